package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// cutoverOffline copies the shard while it is locked, for hosts without logical replication: readers and writers wait as long as the
// copy takes. If the mover dies there, its locks end with its session.
func (j *job) cutoverOffline(ctx context.Context) error {
	if err := j.prepareFence(ctx); err != nil {
		return err
	}
	if err := j.openWayBack(ctx); err != nil {
		return err
	}
	if err := j.verifyStructure(ctx); err != nil {
		return err
	}
	if err := j.readApart(ctx); err != nil {
		return err
	}
	if err := j.measure(ctx); err != nil {
		return err
	}
	return j.retryLocked(ctx, func() (err error) {
		if err := j.recompareIfChanged(ctx, j.verifyStructure); err != nil {
			return err
		}
		if j.mapped, err = j.change().Prepare(ctx); err != nil {
			return err
		}
		return j.whileOpen(ctx, func() error { return j.fenceLocked(ctx, j.copyLocked) })
	})
}

// fenceLocked locks all tables and sequences, and calls fn, which fences the source in their transaction.
func (j *job) fenceLocked(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	cut, err := session.Open(ctx, j.src)
	if err != nil {
		return err
	}
	defer session.Close(ctx, cut)
	tx, err := session.Begin(ctx, cut)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := session.Run(ctx, cut, locks.ExcludeVacuum(j.Schema)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", j.cfg.LockTimeout.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, locks.Exclusive(j.Schema)); err != nil {
		return err
	}
	began := time.Now()
	j.event(progress.Locked)
	if err := j.orChanged(ctx, fn(ctx, tx)); err != nil {
		return err
	}
	j.hold.Take()
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	j.released(time.Since(began).Round(time.Millisecond))
	return nil
}

// copyLocked copies and compares all rows, and fences the source.
func (j *job) copyLocked(ctx context.Context, tx pgx.Tx) error {
	if err := j.unchanged(ctx); err != nil {
		return err
	}
	err := j.watched(ctx, func(context.Context) error { return nil }, func(ctx context.Context) error {
		return j.copyOf(ctx).Locked(ctx, tx.Conn(), j.to, rows.All, func(to pgx.Tx) error {
			j.event(progress.Copied)
			return noteCutover(ctx, to, j.ID)
		})
	})
	if err != nil {
		return err
	}
	if err := j.copyLarge(ctx, tx); err != nil {
		return fmt.Errorf("large objects: %w", err)
	}
	if err := j.refresh(ctx, false); err != nil {
		return err
	}
	j.event(progress.Comparing)
	if err := j.compare(ctx, tx, j.to, rows.All, [2]string{}); err != nil {
		return err
	}
	if err := j.settled(ctx); err != nil {
		return err
	}
	return j.raiseFence(ctx, tx)
}
