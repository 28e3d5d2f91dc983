package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// cutover tries until the shard is fenced. In each try writers wait for the lock timeout at most until it has all
// locks, and for the longest pause at most in all; a try that fails leaves no trace.
func (j *job) cutover(ctx context.Context) error {
	if err := j.catchUp(ctx); err != nil { // after a resume
		return err
	}
	if err := j.prepareFence(ctx); err != nil {
		return err
	}
	if err := j.openWayBack(ctx); err != nil {
		return err
	}
	if err := j.prepareTarget(ctx); err != nil {
		return err
	}
	if err := j.readApart(ctx); err != nil {
		return err
	}
	if err := noteCutover(ctx, j.to, j.ID); err != nil {
		return err
	}
	for doubts := 0; ; doubts++ {
		err := j.retry(ctx, j.tryCutover)
		if last := (*lastPassError)(nil); !errors.As(err, &last) || doubts == maxPasses {
			return err
		}
		if err := j.verifyBefore(ctx); err != nil {
			return err
		}
	}
}

// tryCutover is one try of a cutover, which waits for each lock for the given time.
func (j *job) tryCutover(ctx context.Context, lockTimeout time.Duration) (err error) {
	if err := j.recompareIfChanged(ctx, j.prepareTarget); err != nil {
		return err
	}
	if j.mapped, err = j.change().Prepare(ctx); err != nil {
		return err
	}
	if j.apart.unlogged {
		if err := structure.MakeUnloggedKeys(ctx, j.from, j.to, j.Move, j.cfg.LockTimeout); err != nil {
			return err
		}
	}
	if err := j.turn.Take(ctx, j.from, j.to); err != nil {
		return err
	}
	err = j.whileOpen(ctx, func() error { return j.cutOnce(ctx, lockTimeout, locks.Exclusive(j.Schema), j.fenceIn) })
	if err != nil {
		j.turn.End(ctx)
	}
	return err
}

// prepareFence makes the fence, so that two renames are all that is left to do while writers wait.
func (j *job) prepareFence(ctx context.Context) error {
	if err := fence.Create(ctx, j.from, j.Move, j.Schema); err != nil {
		return fmt.Errorf("fence on %s: %w", j.Source, err)
	}
	return nil
}

// prepareTarget compares what can be compared while nobody waits, and gives the target's tables statistics and its materialised views their rows.
func (j *job) prepareTarget(ctx context.Context) error {
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return j.verifyBefore(both) })
	group.Go(func() error {
		j.analyze(both)
		return j.refresh(both, false)
	})
	return group.Wait()
}

// analyze gives the target's tables first statistics: without them plans can be slow by far until an autovacuum, which comes within a minute. An old
// schema that is brought up to date has statistics.
func (j *job) analyze(ctx context.Context) {
	if j.back != nil {
		return
	}
	if err := rows.Analyze(ctx, j.dst, j.Schema); err != nil && ctx.Err() == nil {
		j.note("no statistics of the tables on %s yet: %v", j.Target, err)
	}
}

// fenceIn is the end of a cutover: it copies what replication does not, checks the catalogs at the same time, and fences the source.
func (j *job) fenceIn(ctx context.Context, tx pgx.Tx) error {
	var group errgroup.Group
	group.Go(func() error { return j.unchanged(ctx) })
	err := j.copyRest(ctx, tx)
	if changed := group.Wait(); changed != nil {
		return changed
	}
	if err != nil {
		return err
	}
	return j.raiseFence(ctx, tx)
}

// copyRest copies unlogged tables and large objects, and compares rows.
func (j *job) copyRest(ctx context.Context, tx pgx.Tx) error {
	if err := j.copyUnlogged(ctx, tx); err != nil {
		return err
	}
	if err := j.copyLarge(ctx, tx); err != nil {
		return fmt.Errorf("large objects: %w", err)
	}
	if err := j.verifyUnderFence(ctx, tx); err != nil {
		return err
	}
	return j.settled(ctx)
}

// settled returns when all that was applied is on the target's disk, since workers of subscriptions do not wait for it, and notes the snapshot of that.
func (j *job) settled(ctx context.Context) error {
	err := settle(ctx, j.to)
	if err == nil {
		err = j.to.QueryRow(ctx, `SELECT pg_current_snapshot()::text`).Scan(&j.carried)
	}
	if err != nil {
		return fmt.Errorf("rows on %s: %w", j.Target, err)
	}
	return nil
}

// settle returns when all that a host has committed is on its disk.
func settle(ctx context.Context, conn *pgx.Conn) error {
	return session.Run(ctx, conn, "SELECT pg_logical_emit_message(true, 'kiloshard', 'moved')")
}

// raiseFence fences the source in a transaction that holds all locks, writes the step, and sets the target's sequences to where the source's were, in the
// transaction that is open there. Of a shard that goes back [job.reopen] sets them, once nobody can draw from two of them.
func (j *job) raiseFence(ctx context.Context, tx pgx.Tx) error {
	if err := j.fenceSource(ctx, tx); err != nil {
		return err
	}
	if j.back == nil {
		if err := session.Run(ctx, j.opening, fence.Carry(j.Schema, j.sequences)); err != nil {
			return fmt.Errorf("sequences on %s: %w", j.Target, err)
		}
	}
	j.event(progress.Carried)
	return nil
}

// fenceSource fences the source, and writes the step.
func (j *job) fenceSource(ctx context.Context, tx pgx.Tx) (err error) {
	if err := fence.Raise(ctx, tx, j.Move); err != nil {
		return err
	}
	if j.Back != nil {
		if err := wayback.Begin(ctx, j.to, j.Back); err != nil {
			return err
		}
	}
	j.sequences, err = fence.Note(ctx, tx, j.Move, fence.Noted{Carried: j.carried, Back: j.Back, Catalogs: j.comparison.catalogs.Behind})
	return err
}
