// Package cleanup drops what moves that have ended have left on hosts: old schemas with their fences, and slots, publications and subscriptions that no move needs any more.
package cleanup

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/sql"
)

// Clean drops the old schema of a move that has ended, and its fence, and reports whether it keeps them because the way back is open. With closes it closes that.
func Clean(ctx context.Context, conns *hosts.Conns, m ledger.Move, closes bool) (kept bool, err error) {
	conn, err := conns.GetWithLedger(ctx, m.Source)
	if err != nil {
		return false, err
	}
	var target *pgx.Conn
	closed := "" // the reason, if the way back is closed
	if !m.BackUntil().IsZero() {
		if target, err = conns.Get(ctx, m.Target); err != nil {
			return false, err
		}
		if closed, err = wayback.Lost(ctx, target, m); err != nil || closed == "" && !closes {
			return err == nil, err
		}
		closed = cmp.Or(closed, "the old schema is dropped")
	}
	if err := claim.Lock(ctx, conn, m.Turn()); err != nil {
		return false, err
	}
	var still, returns bool
	const query = `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE id = $1 AND outcome = 'moved'), EXISTS (SELECT FROM kiloshard.moves WHERE returns = $1 AND outcome IS NULL)`
	if err := conn.QueryRow(ctx, query, m.ID).Scan(&still, &returns); err != nil {
		return false, err
	}
	switch {
	case returns:
		return false, fmt.Errorf("%w, back to %s: see kiloshard move status", claim.ErrUnderWay, m.Source)
	case !still: // another command has cleaned it, or has rolled it back
		return false, nil
	case closed != "":
		if err := wayback.Close(ctx, conn, target, m, closed); err != nil {
			return false, err
		}
	}
	return false, drop(ctx, conn, m)
}

// drop drops the old schema and the fence of a move that has ended, if they are still there.
func drop(ctx context.Context, conn *pgx.Conn, m ledger.Move) error {
	var fenced bool
	if err := conn.QueryRow(ctx, `SELECT `+sql.IsFence("$1::text"), m.Schema).Scan(&fenced); err != nil {
		return err
	}
	gone := []string{m.OldSchema()}
	if fenced {
		gone = append(gone, m.Schema)
	}
	outside, err := checks.Outside(ctx, conn, gone...)
	if err != nil {
		return err
	}
	if len(outside) > 0 { // CASCADE would drop it, too
		return fmt.Errorf("%s: expected nothing outside the old schema to refer to it", strings.Join(outside, "; "))
	}
	newcomers, err := fence.Newcomers(ctx, conn, m)
	if err != nil {
		return err
	}
	if len(newcomers) > 0 {
		return fmt.Errorf("%s: not there when the shard was fenced, so not on %s: expected them to be moved elsewhere or dropped", strings.Join(newcomers, "; "), m.Target)
	}
	held, err := locks.Prepared(ctx, conn, gone)
	if err != nil {
		return err
	}
	if len(held) > 0 { // the DROP would wait for it
		return fmt.Errorf("%s holds locks in it: expected COMMIT PREPARED or ROLLBACK PREPARED; the host that a split has made by promotion has copies, to be rolled back", strings.Join(held, "; "))
	}
	script := "BEGIN; "
	if fenced {
		script += fence.Drop(m.Schema)
	}
	script += fmt.Sprintf("DROP SCHEMA IF EXISTS %s CASCADE; UPDATE kiloshard.moves SET outcome = '%s' WHERE id = '%s'; COMMIT", m.OldSchema(), ledger.Cleaned, m.ID)
	return session.Run(ctx, conn, script)
}
