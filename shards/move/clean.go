package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/sql"
)

// CleanReport is what [Clean] has done.
type CleanReport struct {
	Done    shards.Set // whose old schemas are dropped
	Open    shards.Set // whose way back is open, so that their old schemas are kept
	Removed []string   // what no move needs any more, such as "pg-a: slot kiloshard_move_00007_1a2b3c4d"
	Unknown []string   // what is named like that, and is in no ledger: it is left alone
}

// Clean drops the old schemas of moves that have ended, and the fences in their place; of some shards only if there are any. Who
// does not know of the moves then meets "does not exist". A way back that is open keeps its shard from that, unless the shard is
// among those that are named: the way is closed then. What else moves have left behind is removed if all hosts of the map answer, since any
// of them may have the ledger of a move that needs it.
func Clean(ctx context.Context, m *shards.Map, only shards.Set) (CleanReport, error) {
	conns := hostConns{cfg: Config{Map: m}, open: map[string]*pgx.Conn{}}
	defer conns.close(ctx)
	var c CleanReport
	var done, open []shards.Number
	moves, statusErr := Status(ctx, m)
	errs := []error{statusErr}
	for _, old := range moves {
		if old.Outcome != Moved || only.Len() > 0 && !only.Has(old.Shard) {
			continue
		}
		switch kept, err := old.clean(ctx, &conns, only.Len() > 0); {
		case err != nil:
			errs = append(errs, &shards.ShardError{Shard: old.Shard, Schema: old.moved(), Host: old.Source, Err: err})
		case kept:
			open = append(open, old.Shard)
		default:
			done = append(done, old.Shard)
		}
	}
	c.Done, c.Open = shards.SetOf(done...), shards.SetOf(open...)
	if statusErr == nil {
		errs = append(errs, c.sweep(ctx, m, &conns))
	}
	return c, errors.Join(errs...)
}

// clean drops the old schema of a move, and reports whether it is kept because of its way back.
func (m Move) clean(ctx context.Context, conns *hostConns, closes bool) (kept bool, err error) {
	conn, err := conns.withLedger(ctx, m.Source)
	if err != nil {
		return false, err
	}
	var target *pgx.Conn
	closed := "" // why the way back is
	if !m.BackUntil().IsZero() {
		if target, err = conns.of(ctx, m.Target); err != nil {
			return false, err
		}
		if closed, err = m.wayLost(ctx, target); err != nil || closed == "" && !closes {
			return err == nil, err
		}
		closed = cmp.Or(closed, "the old schema is dropped")
	}
	if err := lockShard(ctx, conn, m.turn()); err != nil {
		return false, err
	}
	var still, returns bool
	const query = `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND outcome = 'moved'), EXISTS (SELECT FROM kiloshard.moves WHERE returns = $1 AND outcome IS NULL)`
	if err := conn.QueryRow(ctx, query, m.ID).Scan(&still, &returns); err != nil {
		return false, err
	}
	switch {
	case returns:
		return false, fmt.Errorf("%w, back to %s: see kiloshard move status", ErrUnderWay, m.Source)
	case !still: // somebody else has cleaned it, or has rolled it back
		return false, nil
	case closed != "":
		if err := m.closeWayBack(ctx, conn, target, closed); err != nil {
			return false, err
		}
	}
	return false, m.drop(ctx, conn)
}

// preparedIn names the prepared transactions that hold locks in some schemas.
const preparedIn = `
	SELECT DISTINCT format('prepared transaction %L', p.gid)
	FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
	JOIN pg_locks own ON own.pid IS NULL AND own.locktype = 'transactionid' AND own.virtualtransaction = l.virtualtransaction
	JOIN pg_prepared_xacts p ON p.transaction = own.transactionid
	WHERE l.pid IS NULL AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND n.nspname = ANY ($1)`

// drop drops the old schema and the fence of a move that has ended, if they are still there.
func (m Move) drop(ctx context.Context, conn *pgx.Conn) error {
	var fence bool
	if err := conn.QueryRow(ctx, `SELECT `+sql.IsFence("$1::text"), m.Schema).Scan(&fence); err != nil {
		return err
	}
	gone := []string{m.moved()}
	if fence {
		gone = append(gone, m.Schema)
	}
	outside, err := checks.Outside(ctx, conn, gone...)
	if err != nil {
		return err
	}
	if len(outside) > 0 { // CASCADE would drop it, too
		return fmt.Errorf("%s: expected nothing outside the old schema to refer to it", strings.Join(outside, "; "))
	}
	newcomers, err := m.newcomers(ctx, conn)
	if err != nil {
		return err
	}
	if len(newcomers) > 0 {
		return fmt.Errorf("%s: not there when the shard was fenced, so not on %s: expected them to be moved elsewhere or dropped", strings.Join(newcomers, "; "), m.Target)
	}
	held, err := session.Texts(ctx, conn, preparedIn, gone)
	if err != nil {
		return err
	}
	if len(held) > 0 { // it would be waited for as long as it is there
		return fmt.Errorf("%s holds locks in it: expected COMMIT PREPARED or ROLLBACK PREPARED; the host that a split has made by promotion has copies, to be rolled back", strings.Join(held, "; "))
	}
	script := "BEGIN; "
	if fence {
		script += dropFence(m.Schema)
	}
	script += fmt.Sprintf("DROP SCHEMA IF EXISTS %s CASCADE; UPDATE kiloshard.moves SET outcome = '%s' WHERE id = '%s'; COMMIT", m.moved(), Cleaned, m.ID)
	return session.Run(ctx, conn, script)
}
