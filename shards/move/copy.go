package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// copy has the target get all rows, and whatever is written from then on, and returns once it keeps up.
func (j *job) copy(ctx context.Context) error {
	if j.back != nil { // what was migrated since has left the structure as it was
		if err := j.copyLedger(ctx); err != nil {
			return err
		}
		if err := j.nameAwaited(ctx); err != nil {
			return err
		}
		return j.catchUp(ctx)
	}
	var copied bool
	if err := j.to.QueryRow(ctx, `SELECT copied IS NOT NULL FROM kiloshard.moves WHERE id = $1`, j.ID).Scan(&copied); err != nil {
		return err
	}
	identities, err := j.identities(ctx)
	if err != nil {
		return err
	}
	lifted, _, err := j.liftScripts(ctx, j.to, rows.Logged)
	if err != nil {
		return err
	}
	if err := j.measure(ctx); err != nil {
		return err
	}
	group, both := errgroup.WithContext(ctx)
	if j.bytes > j.cfg.VerifyUnderFence { // what differs is not found after hours of copying
		group.Go(func() error { return j.compareStructures(both, identities, copied) })
	}
	if lifted != "" {
		// Else what reads the structure would wait for the copy, and then miss the constraints that are made again.
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

// copyFromSlot copies the rows as of where a slot begins, and has a subscription apply what was written since. The rows and that it is
// enabled are one transaction of the target: of an attempt that did not end there are no rows, and the next one begins anew.
//
// Postgres's own workers would copy the rows from host to host. That takes longer, knows no rate, and only a log says why it fails.
func (j *job) copyFromSlot(ctx context.Context) error {
	if err := j.startOver(ctx); err != nil {
		return err
	}
	s, err := j.makeExportedSlot(ctx)
	if err != nil {
		return fmt.Errorf("slot on %s: %w", j.Source, err)
	}
	defer s.close(ctx)
	j.event("slot made")
	if err := j.makeSubscription(ctx, j.to); err != nil {
		return err
	}
	j.event("subscribed")
	from, err := session.Open(ctx, j.src)
	if err != nil {
		return err
	}
	defer session.Close(ctx, from)
	err = session.InTx(ctx, j.to, func(to pgx.Tx) error {
		err := j.watched(ctx, j.slotWorksYet, func(ctx context.Context) error { return j.copySnapshot(ctx, s.snapshot, from, to) })
		if err != nil {
			return err
		}
		s.close(ctx)
		j.event("makes keys and indexes")
		if err := j.makeKeys(ctx, to); err != nil {
			return fmt.Errorf("keys and indexes on %s: %w", j.Target, err)
		}
		j.event("committing")
		return j.enable(ctx, to)
	})
	if err == nil {
		j.event("copied")
	}
	return err
}

// startOver removes what an attempt has left that did not end.
func (j *job) startOver(ctx context.Context) error {
	if err := j.unsubscribe(ctx); err != nil {
		return err
	}
	if err := j.dropSlot(ctx); err != nil {
		return err
	}
	return j.empty(ctx, rows.All) // unlogged tables may refer to the others
}

// copySnapshot copies the rows of a snapshot. Each table has a transaction of the source, so that none is kept from a TRUNCATE once it is
// copied.
func (j *job) copySnapshot(ctx context.Context, snapshot string, from *pgx.Conn, to pgx.Tx) error {
	begin := fmt.Sprintf("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT '%s'; SET LOCAL lock_timeout = %d", session.Quoted(snapshot), lockedFor.Milliseconds())
	if _, err := to.Exec(ctx, heedNothing); err != nil {
		return err
	}
	if err := session.Run(ctx, from, begin); err != nil {
		return err
	}
	tables, err := tablesWith(ctx, from, j.Schema, rows.Logged)
	if err == nil {
		err = session.Run(ctx, from, "COMMIT")
	}
	if err != nil {
		return err
	}
	limit := j.limiter(ctx)
	return j.lifting(ctx, to, rows.Logged, func() error {
		for _, t := range tables {
			err := j.despiteLocks(ctx, from, func() error {
				return session.Run(ctx, from, begin+"; LOCK TABLE ONLY "+session.Name(j.Schema, t.Name)+" IN ACCESS SHARE MODE")
			})
			if err == nil {
				err = j.copyTable(ctx, from, to, t, limit)
			}
			if err == nil {
				err = session.Run(ctx, from, "COMMIT")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// enable has the subscription begin, and the ledger say that all rows have been copied.
func (j *job) enable(ctx context.Context, to pgx.Tx) error {
	there, enabled, err := j.subscribed(ctx)
	if err == nil && (!there || enabled) {
		err = fmt.Errorf("somebody has enabled or dropped subscription %s on %s while rows were copied: expected move resume, which begins the copy anew", j.made(), j.Target)
	}
	if err == nil {
		_, err = to.Exec(ctx, "ALTER SUBSCRIPTION "+session.Name(j.made())+" ENABLE")
	}
	if err == nil {
		_, err = to.Exec(ctx, `UPDATE kiloshard.moves SET copied = clock_timestamp() WHERE id = $1`, j.ID)
	}
	return err
}
