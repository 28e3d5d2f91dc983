package move

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/move/rows"
)

// subscribeAfterCopy copies the rows at a rate, as of where the slot begins, and makes the subscription, which applies what was written
// since. Both are one transaction of the target: of an attempt that did not end there is nothing, and the next one begins anew.
func (j *job) subscribeAfterCopy(ctx context.Context) error {
	from, err := open(ctx, j.src)
	if err != nil {
		return err
	}
	defer closeConn(ctx, from)
	if err := j.makeExportedSlot(ctx, from); err != nil {
		return fmt.Errorf("slot on %s: %w", j.Source, err)
	}
	j.event("slot made")
	if err := j.measure(ctx); err != nil {
		return err
	}
	j.tell(Event{What: "copying", Total: j.bytes})
	group, both := errgroup.WithContext(ctx)
	copied, done := context.WithCancel(both)
	group.Go(func() error {
		defer done()
		return j.copyRows(both, from, rows.Logged, func(to pgx.Tx) error { return j.makeSubscription(both, to, false) })
	})
	group.Go(func() error { // nothing else would notice before all is copied
		for sleep(copied, slotEvery) == nil {
			if _, err := j.slotWorks(copied); err != nil && copied.Err() == nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	j.event("subscribed")
	return nil
}
