package rows

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

const (
	shortPause, longPause = 20 * time.Millisecond, 2 * time.Second
	reportInterval        = 5 * time.Second
	closeLimit            = 30 * time.Second
	firstLockTimeout      = 20 * time.Millisecond // a client that has locked one view and waits for another waits in vain for so long
)

// pause waits, or returns why ctx ended.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitOlder returns when all transactions of the database that are open now have ended, prepared ones included: the snapshot of each
// later one has all that is committed now.
func (j *job) awaitOlder(ctx context.Context, set shards.Set, why string) error {
	// Each transaction holds the lock of its virtual ID, and a prepared one that of its ID.
	const open = `
		select l.virtualxid || ' of process ' || l.pid from pg_locks l join pg_stat_activity a on a.pid = l.pid
		where l.locktype = 'virtualxid' and l.granted and l.mode = 'ExclusiveLock' and l.pid <> pg_backend_pid()
			and a.datid = (select oid from pg_database where datname = current_database()) and a.backend_type is distinct from 'autovacuum worker'
		union all select 'prepared transaction ' || gid from pg_prepared_xacts where database = current_database()`
	older, err := texts(ctx, j.conn, open)
	if err != nil {
		return err
	}
	reported := time.Now()
	for wait := shortPause; len(older) > 0; wait = min(2*wait, longPause/4) {
		if err := pause(ctx, wait); err != nil {
			return err
		}
		if older, err = texts(ctx, j.conn, `select o from unnest($1::text[]) o where o in (`+open+`)`, older); err != nil {
			return err
		}
		if time.Since(reported) > reportInterval && len(older) > 0 {
			reported = time.Now()
			j.report(Event{Kind: Waiting, Shards: set, Text: fmt.Sprintf("%s: waits for transactions that began before, %s", why, strings.Join(older[:min(3, len(older))], ", "))})
		}
	}
	return nil
}

// budget is how long the statements of one try may wait for locks, all together.
type budget struct {
	tx    pgx.Tx
	limit time.Duration
	end   time.Time
}

// restart returns the budget as it was at the beginning.
func (b budget) restart() budget { return budget{b.tx, b.limit, time.Now().Add(b.limit)} }

// run runs statements one by one, each with what is left of the budget.
func (b budget) run(ctx context.Context, statements ...string) error {
	for _, s := range statements {
		left := max(time.Until(b.end), time.Millisecond)
		if err := run(ctx, b.tx, fmt.Sprintf("set local lock_timeout = %d", left.Milliseconds()), s); err != nil {
			return err
		}
	}
	return nil
}

// whileLocked calls try in a transaction, again and again while it fails on locks. Its statements wait for [Config.LockTimeout] at most,
// all together, and for less in the first tries.
func (j *job) whileLocked(ctx context.Context, conn *pgx.Conn, set shards.Set, what string, try func(budget) error) error {
	var deadlock float64
	if err := conn.QueryRow(ctx, `select setting::float8 from pg_settings where name = 'deadlock_timeout'`).Scan(&deadlock); err != nil {
		return err
	}
	// Of a client and a try that wait for each other the try gives up, before Postgres ends the client.
	most := min(j.cfg.LockTimeout, max(time.Millisecond, time.Duration(0.9*deadlock*float64(time.Millisecond))))
	limit, reported := min(firstLockTimeout, most), time.Now()
	for {
		err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{BeginQuery: connect.Begin}, func(tx pgx.Tx) error {
			// A command that hangs loses its session, and with it the locks.
			settings := fmt.Sprintf("set local idle_in_transaction_session_timeout = %d", (j.cfg.LockTimeout + 5*time.Second).Milliseconds())
			if err := run(ctx, tx, settings); err != nil {
				return err
			}
			if err := try(budget{tx: tx, limit: limit}.restart()); err != nil {
				return err
			}
			return j.lock.Check(ctx, tx)
		})
		if !isCode(err, "55P03", "40P01") { // lock_not_available, deadlock_detected
			return err
		}
		if time.Since(reported) > reportInterval {
			reported = time.Now()
			j.report(Event{Kind: Retrying, Shards: set, Text: fmt.Sprintf("%s: tries again: %v", what, err)})
		}
		if err := pause(ctx, limit); err != nil { // clients go on for as long as they have waited
			return err
		}
		limit = min(limit+limit/4, most)
	}
}
