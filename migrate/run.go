package migrate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// run is the state of one [Up], [Down] or [Force].
type run struct {
	id            string
	cfg           Config
	way           direction
	directory     *directory
	target        int32
	sessions      *sessions
	lockSessions  map[string]*session            // by host: hold tern's lock, and run no file
	shardVersions map[shards.Number]shardVersion // at the beginning of the run; not changed by it
	changes       []ChangedFile                  // from the ledgers, at the beginning of the run
	moving        []shards.Range                 // shards being moved to another host
	canaryBefore  shards.Set                     // shards at the target that count as the canary's, as after a failed check
	steps         steps
	shares        shares
	triedAgain    atomic.Int64
	events        events

	snapshot   *snapshot.Snapshot // new shards are made from it; nil if they run the files
	noSnapshot error              // why there is no snapshot although one was wanted

	mu      sync.Mutex      // guards what follows
	touched map[string]bool // by host name: a shard of it was begun
	checked map[hostFile]bool
	under   map[shards.Number]underWay
}

func newRun(cfg Config, way direction, target func(newest int32) (int32, error)) (*run, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := readDirectory(cfg.Map, cfg.Files, first(cfg.Shards), cfg.TemplateEnv, cfg.Logger)
	if err != nil {
		return nil, err
	}
	r := &run{
		id: newRunID(time.Now()), cfg: cfg, way: way, directory: d, sessions: &sessions{logger: cfg.Logger},
		lockSessions: map[string]*session{}, shardVersions: map[shards.Number]shardVersion{}, touched: map[string]bool{}, checked: map[hostFile]bool{}, under: map[shards.Number]underWay{},
	}
	r.events = events{run: r.id, to: cfg.Events}
	r.target, err = target(d.newest())
	return r, err
}

// run takes the shards to the target. It returns those that reached it and those that were there before.
func (r *run) run(ctx context.Context) (done, upToDate shards.Set, err error) {
	plan := fanout.Plan(r.cfg.Map, r.cfg.Shards)
	inventories := look(ctx, r.sessions, r.cfg.Map, r.directory, plan, func(at shardVersion) bool { return at.err == nil && !r.pendingAt(at.version) })
	hosts, failed := troubles(r.cfg.Map, inventories, r.newest())
	failed = slices.DeleteFunc(failed, func(e *shards.ShardError) bool { return errors.Is(e, ErrMoving) })
	if len(hosts) > 0 || len(failed) > 0 {
		return done, upToDate, refusal(r.cfg.Shards, failed, interruptedOr(ctx, hosts)...)
	}
	for _, host := range inventories {
		maps.Copy(r.shardVersions, host.shardVersions)
		r.changes = mergeChanges(r.changes, host.changed)
		r.moving = append(r.moving, host.moving.Ranges()...)
	}
	work, upToDate, moving := r.pending(plan)
	if replaced := r.replaced(); len(replaced) > 0 {
		return done, upToDate, refusal(without(r.cfg.Shards, upToDate), nil, replaced...)
	}
	switch {
	case len(work) == 0 && moving.Len() == 0:
		return done, upToDate, r.shareAlone(ctx)
	case len(work) == 0:
		return done, upToDate, refusal(moving, nil, movingError(moving))
	}
	all := without(r.cfg.Shards, upToDate)
	if err := r.checkFiles(work); err != nil {
		return done, upToDate, refusal(all, nil, err)
	}
	defer r.letGo()
	if causes := r.keep(ctx, work); len(causes) > 0 {
		return done, upToDate, refusal(all, nil, interruptedOr(ctx, causes)...)
	}
	if causes := r.share(ctx); len(causes) > 0 {
		return done, upToDate, &shards.PartialError{NotAttempted: all, Causes: interruptedOr(ctx, causes)}
	}
	told := r.onInterrupt(ctx)
	done, err = r.inPhases(ctx, work, all)
	told()
	done, err = r.flush(ctx, work, done, err)
	if partial := (*shards.PartialError)(nil); moving.Len() > 0 && errors.As(err, &partial) {
		partial.Causes = append(partial.Causes, movingError(moving))
	}
	return done, upToDate, err
}

// pending returns the part of the plan with pending files, the shards without any, and the shards that are skipped because
// they are being moved.
func (r *run) pending(plan []fanout.Work) (work []fanout.Work, upToDate, moving shards.Set) {
	away := shards.SetOfRanges(r.moving...)
	var there, leaving []shards.Number
	for _, w := range plan {
		var left []shards.Number
		for _, n := range w.Shards {
			switch {
			case r.shardVersions[n].err != nil: // [ErrMoving]: its version is unknown
				leaving = append(leaving, n)
			case !r.pendingAt(r.shardVersions[n].version):
				there = append(there, n)
			case away.Has(n):
				leaving = append(leaving, n)
			default:
				left = append(left, n)
			}
		}
		if len(left) > 0 {
			work = append(work, fanout.Work{Host: w.Host, Shards: left})
		}
	}
	return work, shards.SetOf(there...), shards.SetOf(leaving...)
}

// pendingAt reports whether a shard at a version has something to run.
func (r *run) pendingAt(version int32) bool { return r.way == force || r.short(version) }

// short reports whether a version has not reached the target.
func (r *run) short(version int32) bool {
	return r.way == up && version < r.target || r.way == down && version > r.target
}

// checkFiles checks all files that any shard needs, rendered for a shard that needs all of them.
func (r *run) checkFiles(work []fanout.Work) error {
	farthest := work[0].Shards[0]
	for _, w := range work {
		for _, n := range w.Shards {
			if at, most := r.shardVersions[n].version, r.shardVersions[farthest].version; r.way == up && at < most || r.way == down && at > most {
				farthest = n
			}
		}
	}
	files, err := r.directory.pending(farthest, r.shardVersions[farthest].version, r.target, r.way)
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

// keep opens a session to each host that locks out tern programs until the run ends, and creates or upgrades the ledger.
// It returns a [shards.HostError] for each host where that fails.
func (r *run) keep(ctx context.Context, work []fanout.Work) []error {
	lockSessions := make([]*session, len(work))
	errs := make([]error, len(work))
	var wg sync.WaitGroup
	for i, w := range work {
		wg.Go(func() {
			lockSessions[i], errs[i] = r.lockSession(ctx, w.Host)
		})
	}
	wg.Wait()
	var causes []error
	for i, w := range work {
		if errs[i] != nil {
			causes = append(causes, &shards.HostError{Host: w.Host.Name, Err: errs[i]})
			continue
		}
		r.lockSessions[w.Host.Name] = lockSessions[i]
	}
	return causes
}

// letGo returns the lock sessions to the pool, which closes them with all others.
func (r *run) letGo() {
	for _, lockSession := range r.lockSessions {
		r.sessions.give(lockSession)
	}
}

func (r *run) lockSession(ctx context.Context, host shards.Host) (*session, error) {
	s, err := r.sessions.take(ctx, host)
	if err != nil {
		return nil, err
	}
	if err = s.lockOutTern(ctx, r.cfg.TernWait); err == nil {
		err = s.keepLedger(ctx, r.cfg.Map.Schemas(r.cfg.Map.NumbersOn(host.Name)))
	}
	if err != nil {
		r.sessions.give(s)
		return nil, err
	}
	return s, nil
}
