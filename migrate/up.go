package migrate

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Run takes shards up or down to a version, as described in the package's documentation, and reports its progress to
// Config.Events. After a failure, run it again for the rest. Several Runs can work at the same time, in one process or in
// several: one of them runs each file in each shard, once.
//
// Without Config.Down it goes up to Config.To, by default to the newest file. With Config.Down it goes down to Config.To,
// by default to 0, and runs the down parts of the files above it, the newest first. A file without a down part is an
// error before anything runs.
//
// When ctx ends, Run finishes the shards under way within Config.Grace and starts no other.
//
// The error is a [shards.PartialError] that names the shards that are done, failed and not attempted. The report says what
// was done all the same. [ErrNothingRun] is among the causes if no file ran on any host. Any other error is about the
// config or the files; then no host was contacted. The error of a shard usually wraps a [FileError].
func Run(ctx context.Context, cfg Config) (Report, error) {
	way := up
	if cfg.Down {
		way = down
	}
	return do(ctx, cfg, way, targetOf(cfg))
}

// targetOf returns a function from the newest file's version to the target version.
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
	report.TriedAgain = int(r.triedAgain.Load())
	report.Shared = r.shares.inOrder(r.directory.names)
	if r.snapshot != nil {
		donor := r.snapshot.Donor()
		report.Donor = &donor
	}
	if way == up && len(report.Steps) > 0 && report.Done.Len() > 0 {
		report.BareNames = r.findBareNames(ctx, first(report.Done))
	}
	report.Elapsed = time.Since(start)
	return report, err
}

func first(set shards.Set) shards.Number { return set.Ranges()[0].First }
