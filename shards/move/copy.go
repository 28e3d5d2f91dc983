package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// publish makes the publication, in place of what an earlier attempt has left.
func (j *job) publish(ctx context.Context) error {
	s := j.stream()
	if err := s.Unpublish(ctx); err != nil {
		return err
	}
	changed, err := s.Identify(ctx)
	if err != nil {
		return err
	}
	if changed {
		j.event(progress.Identified)
	}
	if err := s.Publish(ctx); err != nil {
		return err
	}
	j.event(progress.Published)
	return nil
}

// copy returns when the target has all rows, and keeps up with writers.
func (j *job) copy(ctx context.Context) error {
	if j.back != nil { // migrations since have left the structure as it was
		if err := structure.CopyLedger(ctx, j.from, j.to, j.Shard); err != nil {
			return err
		}
		if err := wayback.ReportStandbys(ctx, j.from, *j.back, j.limits()); err != nil {
			return err
		}
		return j.catchUp(ctx)
	}
	var copied bool
	if err := j.to.QueryRow(ctx, `SELECT copied IS NOT NULL FROM kiloshard.moves WHERE id = $1`, j.ID).Scan(&copied); err != nil {
		return err
	}
	identities, err := j.stream().Identities(ctx)
	if err != nil {
		return err
	}
	lifts, err := rows.Lifts(ctx, j.to, j.Schema)
	if err != nil {
		return err
	}
	if err := j.measure(ctx); err != nil {
		return err
	}
	group, both := errgroup.WithContext(ctx)
	if j.bytes > j.cfg.VerifyUnderFence { // a difference is found before hours of copying
		group.Go(func() error { return j.compareStructures(both, identities, copied) })
	}
	if lifts {
		// Otherwise the comparison would wait for the copy, and then miss the constraints that the copy makes again.
		if err := group.Wait(); err != nil {
			return err
		}
		group, both = errgroup.WithContext(ctx)
	}
	if !copied {
		group.Go(func() error { return j.copyFromSlot(both) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return j.catchUp(ctx)
}

// copyFromSlot copies the rows as of where a slot begins, and starts a subscription that applies later writes. One transaction of the target has the
// rows and starts the subscription: an attempt that did not end leaves no rows, and the next one begins again.
//
// Postgres's own workers would copy the rows from host to host. That takes longer, has no limit of its rate, and reports errors only in a log.
func (j *job) copyFromSlot(ctx context.Context) error {
	s := j.stream()
	if err := j.startOver(ctx, s); err != nil {
		return err
	}
	slot, err := s.ExportSlot(ctx)
	if err != nil {
		return fmt.Errorf("slot on %s: %w", j.Source, err)
	}
	defer slot.Close(ctx)
	j.event(progress.SlotMade)
	if err := s.Subscribe(ctx, j.to); err != nil {
		return err
	}
	j.event(progress.Subscribed)
	from, err := session.Open(ctx, j.src)
	if err != nil {
		return err
	}
	defer session.Close(ctx, from)
	err = session.InTx(ctx, j.to, func(to pgx.Tx) error {
		err := j.watched(ctx, s.CheckSlot, func(ctx context.Context) error {
			return j.copyOf(ctx).Snapshot(ctx, slot.Snapshot, from, to, locks.Timeout, func(lock func() error) error {
				return locks.Retry(ctx, from, j.limits(), j.Schema, lock)
			})
		})
		if err != nil {
			return err
		}
		slot.Close(ctx)
		j.event(progress.MakesKeys)
		if err := structure.MakeKeys(ctx, to, j.Move); err != nil {
			return fmt.Errorf("keys and indexes on %s: %w", j.Target, err)
		}
		j.event(progress.Committing)
		return s.Enable(ctx, to)
	})
	if err == nil {
		j.event(progress.Copied)
	}
	return err
}

// startOver removes what an attempt has left that did not end.
func (j *job) startOver(ctx context.Context, s replicate.Stream) error {
	if err := s.Unsubscribe(ctx); err != nil {
		return err
	}
	if err := s.DropSlot(ctx); err != nil {
		return err
	}
	return rows.Empty(ctx, j.to, j.Schema, rows.All) // unlogged tables may refer to the others
}

// watchInterval is the time between two looks at a copy.
const watchInterval = time.Second

// watched calls copying, and reports once a second how far the target is. It ends copying when check returns an error.
func (j *job) watched(ctx context.Context, check func(context.Context) error, copying func(context.Context) error) error {
	to, err := session.Open(ctx, j.dst)
	if err != nil {
		return err
	}
	defer session.Close(ctx, to)
	j.report(progress.Event{Kind: progress.Copying, What: string(progress.Copying), Total: j.bytes})
	began := time.Now()
	group, both := errgroup.WithContext(ctx)
	copied, done := context.WithCancel(both)
	group.Go(func() error {
		defer done()
		return copying(both)
	})
	group.Go(func() error {
		for wait.Sleep(copied, watchInterval) == nil {
			if err := check(both); err != nil {
				return err
			}
			size, err := rows.Size(both, to, j.Schema)
			if err != nil {
				return err
			}
			e := progress.Event{Kind: progress.Copying, What: string(progress.Copying), Bytes: min(size, j.bytes), Total: j.bytes}
			if e.Bytes > 0 {
				e.Left = time.Duration(float64(time.Since(began)) * float64(e.Total-e.Bytes) / float64(e.Bytes)).Round(time.Second)
			}
			j.report(e)
		}
		return nil
	})
	return group.Wait()
}

// measure notes how large the shard's tables are.
func (j *job) measure(ctx context.Context) error {
	return locks.Retry(ctx, j.from, j.limits(), j.Schema, func() error {
		return session.InTx(ctx, j.from, func(from pgx.Tx) error {
			_, err := from.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", locks.Timeout.Milliseconds()))
			if err == nil {
				j.bytes, err = rows.Size(ctx, from.Conn(), j.Schema)
			}
			return err
		})
	})
}
