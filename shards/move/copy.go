package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/rows"
)

// copy has the target get all rows, and whatever is written from then on, and returns once it keeps up.
func (j *job) copy(ctx context.Context) error {
	if j.back != nil { // what was migrated since has left the structure as it was
		if err := j.copyLedger(ctx); err != nil {
			return err
		}
		return j.catchUp(ctx)
	}
	_, copied, err := j.subscribed(ctx)
	if err != nil {
		return err
	}
	identities, err := j.identities(ctx)
	if err != nil {
		return err
	}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return j.compareStructures(both, identities) }) // what differs is not found after hours of copying
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
	from, err := open(ctx, j.src)
	if err != nil {
		return err
	}
	defer closeConn(ctx, from)
	if err := j.makeExportedSlot(ctx, from); err != nil {
		return fmt.Errorf("slot on %s: %w", j.Source, err)
	}
	j.event("slot made")
	if err := j.makeSubscription(ctx, j.to); err != nil {
		return err
	}
	j.event("subscribed")
	if err := j.measure(ctx); err != nil {
		return err
	}
	j.tell(Event{What: "copying", Total: j.bytes})
	group, both := errgroup.WithContext(ctx)
	copied, done := context.WithCancel(both)
	group.Go(func() error {
		defer done()
		return inTx(both, j.to, func(to pgx.Tx) error {
			if err := j.copyRows(both, from, to, rows.Logged); err != nil {
				return err
			}
			j.event("committing")
			_, err := to.Exec(both, "ALTER SUBSCRIPTION "+name(j.made())+" ENABLE")
			return err
		})
	})
	group.Go(func() error { // nothing else would notice before all is copied
		for sleep(copied, slotEvery) == nil {
			if _, err := j.slotWorks(both); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	j.event("copied")
	return nil
}

// startOver removes what an attempt has left that did not end, or whose subscription somebody has disabled since.
func (j *job) startOver(ctx context.Context) error {
	left, _, err := j.subscribed(ctx)
	if err != nil {
		return err
	}
	if left {
		if err := j.unsubscribe(ctx); err != nil {
			return err
		}
		if err := inTx(ctx, j.to, func(to pgx.Tx) error { return j.empty(ctx, to, rows.Logged) }); err != nil {
			return err
		}
	}
	return j.dropSlot(ctx)
}

// measure notes how large the shard's tables are.
func (j *job) measure(ctx context.Context) error {
	const query = `SELECT coalesce(sum(pg_table_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`
	return j.from.QueryRow(ctx, query, j.Schema).Scan(&j.bytes)
}
