package migrate

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// run is the state of one [Up], [Down] or [Force].
type run struct {
	id        string
	cfg       Config
	way       direction
	directory *directory
	target    int32
	sessions  *sessions
	keepers   map[string]*session        // by host: holds tern's lock, and runs no file
	standings map[shards.Number]standing // at the beginning of the run; not changed by it
	changes   []ChangedFile              // what the ledgers said then
	steps     steps
	snapshot  *snapshot.Snapshot // that new shards are made from; nil when they run the files
	donor     shards.Number      // of the snapshot
	events    events

	mu      sync.Mutex      // guards touched
	touched map[string]bool // the hosts, by name, to which anything was sent
}

func newRun(cfg Config, way direction, target func(newest int32) (int32, error)) (*run, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := readDirectory(cfg.Map, cfg.Files, first(cfg.Shards), cfg.Logger)
	if err != nil {
		return nil, err
	}
	r := &run{
		id: newRunID(time.Now()), cfg: cfg, way: way, directory: d, sessions: &sessions{logger: cfg.Logger},
		keepers: map[string]*session{}, standings: map[shards.Number]standing{}, touched: map[string]bool{},
	}
	r.events = events{run: r.id, to: cfg.Events}
	r.target, err = target(d.newest())
	return r, err
}

// run does the work. It returns the shards that it brought to the target and those that were there before.
func (r *run) run(ctx context.Context) (done, upToDate shards.Set, err error) {
	plan := fanout.Plan(r.cfg.Map, r.cfg.Shards)
	surveys := look(ctx, r.sessions, r.cfg.Map, r.directory, plan)
	if hosts, failed := troubles(r.cfg.Map, surveys, r.newest()); len(hosts) > 0 || len(failed) > 0 {
		return done, upToDate, refusal(r.cfg.Shards, failed, interruptedOr(ctx, hosts)...)
	}
	for _, host := range surveys {
		maps.Copy(r.standings, host.standings)
		r.changes = mergeChanges(r.changes, host.changed)
	}
	work, upToDate := r.pending(plan)
	if len(work) == 0 {
		return done, upToDate, nil
	}
	all := without(r.cfg.Shards, upToDate)
	if err := r.checkFiles(work); err != nil {
		return done, upToDate, refusal(all, nil, err)
	}
	defer r.letGo()
	if causes := r.keep(ctx, work); len(causes) > 0 {
		return done, upToDate, refusal(all, nil, interruptedOr(ctx, causes)...)
	}
	done, err = r.inPhases(ctx, work, all)
	done, err = r.flush(ctx, work, done, err)
	return done, upToDate, err
}

// pending returns the part of the plan that has something to do, and the shards that have nothing.
func (r *run) pending(plan []fanout.Work) (work []fanout.Work, upToDate shards.Set) {
	var there []shards.Number
	for _, w := range plan {
		var left []shards.Number
		for _, n := range w.Shards {
			if r.way == force || r.short(r.standings[n].version) {
				left = append(left, n)
			} else {
				there = append(there, n)
			}
		}
		if len(left) > 0 {
			work = append(work, fanout.Work{Host: w.Host, Shards: left})
		}
	}
	return work, shards.SetOf(there...)
}

// short tells whether a version is on this side of the target.
func (r *run) short(version int32) bool {
	return r.way == up && version < r.target || r.way == down && version > r.target
}

// checkFiles checks all files that any shard needs, as they are rendered for one of those shards.
func (r *run) checkFiles(work []fanout.Work) error {
	farthest := work[0].Shards[0]
	for _, w := range work {
		for _, n := range w.Shards {
			if at, most := r.standings[n].version, r.standings[farthest].version; r.way == up && at < most || r.way == down && at > most {
				farthest = n
			}
		}
	}
	files, err := r.directory.pending(farthest, r.standings[farthest].version, r.target, r.way)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// keep opens to each host the session that keeps out tern programs for the length of the run, and sees to the ledger.
// It returns a [shards.HostError] for each host where it cannot.
func (r *run) keep(ctx context.Context, work []fanout.Work) []error {
	keepers := make([]*session, len(work))
	errs := make([]error, len(work))
	var wg sync.WaitGroup
	for i, w := range work {
		wg.Go(func() {
			keepers[i], errs[i] = r.keeper(ctx, w.Host)
		})
	}
	wg.Wait()
	var causes []error
	for i, w := range work {
		if errs[i] != nil {
			causes = append(causes, &shards.HostError{Host: w.Host.Name, Err: errs[i]})
			continue
		}
		r.keepers[w.Host.Name] = keepers[i]
	}
	return causes
}

// letGo gives the keepers back, which are then closed with all other sessions.
func (r *run) letGo() {
	for _, keeper := range r.keepers {
		r.sessions.give(keeper)
	}
}

func (r *run) keeper(ctx context.Context, host shards.Host) (*session, error) {
	s, err := r.sessions.take(ctx, host)
	if err != nil {
		return nil, err
	}
	if err = s.lockOutTern(ctx, r.cfg.TernWait); err == nil {
		err = s.keepLedger(ctx)
	}
	if err != nil {
		r.sessions.give(s)
		return nil, err
	}
	return s, nil
}
