package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
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
	way := files.Up
	if cfg.Down {
		way = files.Down
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

func do(ctx context.Context, cfg Config, way files.Direction, target func(newest int32) (int32, error)) (Report, error) {
	start := time.Now()
	r, err := newRun(cfg, way, target)
	if err != nil {
		return Report{}, err
	}
	defer r.sessions.Close(ctx)
	report := Report{Run: r.id, By: r.cfg.By, Began: start, Target: r.target}
	report.Done, report.UpToDate, err = r.run(ctx)
	report.Steps, report.Changed, report.NoSnapshot = r.steps.sorted(), r.changes, r.noSnapshot
	report.TriedAgain = int(r.triedAgain.Load())
	report.Shared = r.shares.inOrder(r.directory.Names)
	if r.snapshot != nil {
		donor := r.snapshot.Donor()
		report.Donor = &donor
	}
	if way == files.Up && len(report.Steps) > 0 && report.Done.Len() > 0 {
		report.BareNames = r.findBareNames(ctx, first(report.Done))
	}
	report.Elapsed = time.Since(start)
	return report, err
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

// Force sets the version of the shards in Config.Shards, which must not be empty, without running a file. Use it after
// you did the work of a file by hand, or undid it. Version 0 is the version before the first file.
//
// Force waits for tern programs and for other runs as [Up] does. It sets each shard in a transaction that holds the shard's
// lock, and records it in the ledger with the direction "force", even if the version does not change. Ledger entries
// above the version are no longer current, and a file marked "tern: disable-tx" that was begun in a shard starts
// again there. A shard above the newest file can be set too.
//
// An error that is not a [shards.PartialError] is about the config or the version; then no host was contacted.
func Force(ctx context.Context, cfg Config, version int32) (Report, error) {
	if cfg.Shards.Len() == 0 {
		return Report{}, errors.New("migrate: Config.Shards is empty: expected the shards whose version is to be set")
	}
	return do(ctx, cfg, files.Force, func(newest int32) (int32, error) {
		if version < 0 || version > newest {
			return 0, fmt.Errorf("version %d: expected 0, or that of a file, 1 to %d", version, newest)
		}
		return version, nil
	})
}
