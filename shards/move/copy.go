package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// errMarkerLate says that the target did not show a marker in time.
var errMarkerLate = errors.New("the target does not keep up")

// copy waits until all tables are copied and the target keeps up with what is written.
func (j *job) copy(ctx context.Context) error {
	if j.back != nil { // what was migrated since has left the structure as it was
		if err := j.copyLedger(ctx); err != nil {
			return err
		}
		return j.catchUp(ctx)
	}
	if err := j.measure(ctx); err != nil {
		return err
	}
	identities, err := j.identities(ctx)
	if err != nil {
		return err
	}
	j.tell(Event{What: "copying", Total: j.bytes})
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return j.untilCopied(both) })
	group.Go(func() error { return j.compareStructures(both, identities) }) // what differs is not found after hours of copying
	if err := group.Wait(); err != nil {
		return err
	}
	j.event("copied")
	return j.catchUp(ctx)
}

// untilCopied returns when the target's workers have copied all tables.
func (j *job) untilCopied(ctx context.Context) error {
	began := time.Now()
	told := began
	slot, workers, blockers := slotWatch{job: j}, workerWatch{job: j}, blockerWatch{job: j, on: j.from, host: j.Source}
	var subscription uint32
	return wait(ctx, 0, soon, nil, func() (bool, error) {
		err := slot.look(ctx)
		if err == nil {
			err = workers.look(ctx)
		}
		if err == nil && subscription != 0 { // each table is copied as of a slot of its own
			err = blockers.look(ctx, fmt.Sprintf("^pg_%d_sync_", subscription))
		}
		if err != nil {
			return false, err
		}
		var left int
		var copied int64
		const query = `
			SELECT (SELECT count(*) FROM pg_subscription_rel r WHERE r.srsubid = s.oid AND r.srsubstate <> 'r'),
				(SELECT coalesce(sum(pg_table_size(oid)), 0) FROM pg_class WHERE relnamespace = $2::regnamespace AND relkind = 'r')::bigint, s.oid
			FROM pg_subscription s WHERE s.subname = $1`
		if err := j.to.QueryRow(ctx, query, j.made(), j.Schema).Scan(&left, &copied, &subscription); err != nil {
			return false, fmt.Errorf("subscription on %s: %w", j.Target, err)
		}
		if time.Since(told) > time.Second {
			told = time.Now()
			j.tell(j.copying(began, copied))
		}
		return left == 0, nil
	})
}

// copying says how far a copy is that began some time ago.
func (j *job) copying(began time.Time, copied int64) Event {
	e := Event{What: "copying", Bytes: min(copied, j.bytes), Total: j.bytes}
	if e.Bytes > 0 {
		e.Left = time.Duration(float64(time.Since(began)) * float64(j.bytes-e.Bytes) / float64(e.Bytes)).Round(time.Second)
	}
	return e
}

// measure notes how large the shard's tables are.
func (j *job) measure(ctx context.Context) error {
	const query = `SELECT coalesce(sum(pg_table_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`
	return j.from.QueryRow(ctx, query, j.Schema).Scan(&j.bytes)
}

// catchUp returns when a marker takes no longer to the target than it may.
func (j *job) catchUp(ctx context.Context) error {
	for {
		began := time.Now()
		if err := j.mark(ctx, 0); err != nil {
			return err
		}
		if lag := time.Since(began); lag > j.cfg.MaxLag {
			j.tell(Event{What: fmt.Sprintf("behind by %s", lag.Round(time.Millisecond)), Lag: lag})
			continue
		}
		j.event("caught up")
		return nil
	}
}

// mark writes a marker on the source and waits until the target has it: it then has all that was committed before.
// It returns errMarkerLate after limit, 0 for none.
func (j *job) mark(ctx context.Context, limit time.Duration) error {
	if j.back != nil {
		return j.drain(ctx)
	}
	attempt := time.Now().UnixNano()
	if _, err := j.from.Exec(ctx, `INSERT INTO kiloshard.move_markers VALUES ($1, $2)`, j.ID, attempt); err != nil {
		return err
	}
	slot, workers := slotWatch{job: j}, workerWatch{job: j}
	return wait(ctx, limit, quickly, errMarkerLate, func() (there bool, err error) {
		if limit == 0 { // else nobody has time for it
			err := slot.look(ctx)
			if err == nil {
				err = workers.look(ctx)
			}
			if err != nil {
				return false, err
			}
		}
		err = j.to.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.move_markers WHERE move = $1 AND attempt = $2)`, j.ID, attempt).Scan(&there)
		return there, err
	})
}

// dropMarkers removes the markers of a move, or of a promotion.
func dropMarkers(ctx context.Context, conn *pgx.Conn, of string) error {
	_, err := conn.Exec(ctx, `DELETE FROM kiloshard.move_markers WHERE move = $1`, of)
	return err
}
