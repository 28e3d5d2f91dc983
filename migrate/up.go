package migrate

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// Up takes shards up to a version, as the package's documentation tells. Run again, it takes up
// what is left. It may be called while another Up is at work, in this process or in another: each
// file is then run once in each shard by one of them.
//
// When ctx ends, the shards under way are finished within Config.Grace and no other is begun.
//
// The error is a [shards.PartialError] that says which shards are done, failed and not attempted,
// with a report of what was done nevertheless; ErrNothingRun is among its causes when no file was
// run anywhere. Any other error tells what is wrong with the config or with the files themselves,
// before any host was asked. What the error of a shard wraps is mostly a [FileError].
func Up(ctx context.Context, cfg Config) (Report, error) {
	start := time.Now()
	r, err := newUpRun(cfg)
	if err != nil {
		return Report{}, err
	}
	defer r.sessions.close(ctx)
	report := Report{Target: r.target}
	report.Done, report.UpToDate, err = r.run(ctx)
	report.Steps = r.steps.sorted()
	report.Elapsed = time.Since(start)
	return report, err
}

// upRun is the state of one [Up].
type upRun struct {
	cfg       Config
	directory *directory
	target    int32
	sessions  *sessions
	standings map[shards.Number]standing // at the beginning of the run; not changed by it
	steps     steps

	mu      sync.Mutex      // guards touched
	touched map[string]bool // the hosts, by name, to which anything was sent
}

func newUpRun(cfg Config) (*upRun, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := readDirectory(cfg.Map, cfg.Files, first(cfg.Shards), cfg.Logger)
	if err != nil {
		return nil, err
	}
	target := cfg.To
	if target == 0 {
		target = d.newest()
	}
	if target < 0 || target > d.newest() {
		return nil, fmt.Errorf("version %d: the files go from 1 to %d", target, d.newest())
	}
	return &upRun{
		cfg: cfg, directory: d, target: target, sessions: &sessions{logger: cfg.Logger},
		standings: map[shards.Number]standing{}, touched: map[string]bool{},
	}, nil
}

func first(set shards.Set) shards.Number { return set.Ranges()[0].First }

// run does the work of [Up]. It returns the shards that it brought to the target and those that
// were there before.
func (r *upRun) run(ctx context.Context) (done, upToDate shards.Set, err error) {
	plan := fanout.Plan(r.cfg.Map, r.cfg.Shards)
	surveys := look(ctx, r.sessions, r.cfg.Map, plan)
	if hosts, failed := troubles(r.cfg.Map, surveys, r.directory.newest()); len(hosts) > 0 || len(failed) > 0 {
		return done, upToDate, refusal(r.cfg.Shards, failed, interruptedOr(ctx, hosts)...)
	}
	for _, host := range surveys {
		maps.Copy(r.standings, host.standings)
	}
	work, upToDate := r.pending(plan)
	if len(work) == 0 {
		return done, upToDate, nil
	}
	if err := r.checkFiles(work); err != nil {
		return done, upToDate, refusal(without(r.cfg.Shards, upToDate), nil, err)
	}
	done, err = fanout.Run(ctx, fanout.Config[*session]{
		Map: r.cfg.Map, Open: r.open, Close: r.close, Alive: alive, Do: r.do,
		PerHost: r.cfg.PerHost, Grace: r.cfg.Grace, Progress: r.cfg.Progress,
	}, work)
	done, err = r.flush(ctx, work, done, err)
	return done, upToDate, err
}

// pending returns the part of the plan that has something to do, and the shards that have nothing.
func (r *upRun) pending(plan []fanout.Work) (work []fanout.Work, upToDate shards.Set) {
	var there []shards.Number
	for _, w := range plan {
		var behind []shards.Number
		for _, n := range w.Shards {
			if r.standings[n].version < r.target {
				behind = append(behind, n)
			} else {
				there = append(there, n)
			}
		}
		if len(behind) > 0 {
			work = append(work, fanout.Work{Host: w.Host, Shards: behind})
		}
	}
	return work, shards.SetOf(there...)
}

// checkFiles checks all files that any shard needs, as they are rendered for one of those shards.
func (r *upRun) checkFiles(work []fanout.Work) error {
	lowest := work[0].Shards[0]
	for _, w := range work {
		for _, n := range w.Shards {
			if r.standings[n].version < r.standings[lowest].version {
				lowest = n
			}
		}
	}
	files, err := r.directory.pending(lowest, r.standings[lowest].version, r.target)
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
