package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// cutoverOffline copies the shard while it is locked, for hosts without logical replication: readers and writers wait as long as the
// copy takes. A mover that dies there frees the shard, since its locks go with its connection.
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
	return j.untilFenced(ctx, func() error {
		if err := j.unlessAsCompared(ctx, j.verifyStructure); err != nil {
			return err
		}
		if err := j.readMap(ctx); err != nil {
			return err
		}
		return j.whileOpen(ctx, func() error { return j.fenceLocked(ctx, j.copyLocked) })
	})
}

// untilFenced calls try until it no longer fails for the sake of locks.
func (j *job) untilFenced(ctx context.Context, try func() error) error {
	began := j.tries()
	for {
		if err := j.untilQuiet(ctx, j.from, began, j.Schema); err != nil {
			return err
		}
		err := try()
		if err == nil {
			return nil
		}
		if err := j.tryAgain(ctx, "cutover", began, cutoverPause/10, err); err != nil {
			return err
		}
	}
}

// fenceLocked takes the locks of all tables and sequences, and has fn fence the source in their transaction.
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
	if err := session.Run(ctx, cut, keepOutVacuum(j.Schema)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", j.cfg.LockTimeout.Milliseconds())); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, lockOut(j.Schema)); err != nil {
		return err
	}
	began := time.Now()
	j.event("locked")
	if err := j.orMeanwhile(ctx, fn(ctx, tx)); err != nil {
		return err
	}
	j.hold()
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	j.event("released after %s", time.Since(began).Round(time.Millisecond))
	return nil
}

// copyLocked copies and compares all rows, and fences the source.
func (j *job) copyLocked(ctx context.Context, tx pgx.Tx) error {
	if err := j.isAsCompared(ctx); err != nil {
		return err
	}
	err := j.watched(ctx, func(context.Context) error { return nil }, func(ctx context.Context) error {
		return j.copyAgain(ctx, tx.Conn(), rows.All, j.limiter(ctx), func(to pgx.Tx) error { return j.noteCutover(ctx, to) })
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
	j.event("comparing")
	if err := j.compare(ctx, tx, j.to, rows.All, [2]string{}); err != nil {
		return err
	}
	sequences, err := sequencesOf(ctx, tx, j.Schema)
	if err != nil {
		return err
	}
	if err := j.carry(ctx, sequences); err != nil {
		return fmt.Errorf("sequences on %s: %w", j.Target, err)
	}
	j.event("carried")
	return j.erect(ctx, tx, sequences)
}
