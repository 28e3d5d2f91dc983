package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Run takes shards up or down to a version, as the package's documentation tells, and tells Config.Events what happens
// meanwhile. Run again, it takes up what is left. It may be called while another Run is at work, in this process or in
// another: each file is then run once in each shard by one of them.
//
// Up is to Config.To, or else to the newest file. Down, as Config.Down says, is to Config.To, 0 for nothing at all, by
// the down parts of the files above it, the newest first. A file that has no way down is found before anything is run.
//
// When ctx ends, the shards under way are finished within Config.Grace and no other is begun.
//
// The error is a [shards.PartialError] that says which shards are done, failed and not attempted,
// with a report of what was done nevertheless; ErrNothingRun is among its causes when no file was
// run anywhere. Any other error says what is wrong with the config or with the files themselves,
// before any host was asked. What the error of a shard wraps is mostly a [FileError].
func Run(ctx context.Context, cfg Config) (Report, error) {
	way := up
	if cfg.Down {
		way = down
	}
	return do(ctx, cfg, way, targetOf(cfg))
}

// targetOf returns what the version to go to is, once that of the newest file is known.
func targetOf(cfg Config) func(newest int32) (int32, error) {
	if !cfg.Down {
		return func(newest int32) (int32, error) { return upTarget(cfg.To, newest) }
	}
	return func(newest int32) (int32, error) {
		if cfg.To < 0 || cfg.To >= newest {
			return 0, fmt.Errorf("version %d: expected 0 to %d, one below the newest file", cfg.To, newest-1)
		}
		return cfg.To, nil
	}
}

// Up is [Run] with Config.Down false.
func Up(ctx context.Context, cfg Config) (Report, error) {
	cfg.Down = false
	return Run(ctx, cfg)
}

// Down is [Run] with Config.Down true.
func Down(ctx context.Context, cfg Config) (Report, error) {
	cfg.Down = true
	return Run(ctx, cfg)
}

func upTarget(to, newest int32) (int32, error) {
	if to == 0 {
		to = newest
	}
	if to < 0 || to > newest {
		return 0, fmt.Errorf("version %d: the files go from 1 to %d", to, newest)
	}
	return to, nil
}

func do(ctx context.Context, cfg Config, way direction, target func(newest int32) (int32, error)) (Report, error) {
	start := time.Now()
	r, err := newRun(cfg, way, target)
	if err != nil {
		return Report{}, err
	}
	defer r.sessions.close(ctx)
	report := Report{Run: r.id, By: r.cfg.By, Began: start, Target: r.target}
	report.Done, report.UpToDate, err = r.run(ctx)
	report.Steps, report.Changed, report.NoSnapshot = r.steps.sorted(), r.changes, r.noSnapshot
	if r.snapshot != nil {
		donor := r.snapshot.Donor()
		report.Donor = &donor
	}
	report.Elapsed = time.Since(start)
	return report, err
}

func first(set shards.Set) shards.Number { return set.Ranges()[0].First }
