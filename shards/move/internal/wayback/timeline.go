package wayback

import (
	"bufio"
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// timeline is an expression for the timeline that a primary writes.
const timeline = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int`

// onTimeline returns the timeline of a host. Its changes are applied up to a position on a timeline, of. The error is a [changes.Error] if the host's timeline left that
// one before: a standby was promoted that lacked some of the changes, and its new changes have their positions.
func onTimeline(ctx context.Context, conn *pgx.Conn, host string, of int, applied changes.LSN) (now int, err error) {
	if err := conn.QueryRow(ctx, `SELECT `+timeline).Scan(&now); err != nil || of == now {
		return now, err
	}
	var until changes.LSN
	if of < now {
		if until, err = leftAt(ctx, conn, now, of); err != nil {
			return now, fmt.Errorf("the timelines of %s: %w", host, err)
		}
	}
	if applied > until {
		return now, &changes.Error{Err: fmt.Errorf("a failover of %s has lost some that were applied before", host)}
	}
	return now, nil
}

// leftAt returns where a server that is on a timeline now left an earlier one, 0 if it was never on that.
func leftAt(ctx context.Context, server *pgx.Conn, now, earlier int) (changes.LSN, error) {
	config := server.Config()
	config.RuntimeParams["replication"] = "database"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer session.Close(ctx, conn)
	results, err := conn.PgConn().Exec(ctx, fmt.Sprintf("TIMELINE_HISTORY %d", now)).ReadAll()
	if err != nil {
		return 0, err
	}
	const content = 1 // the column with the lines of the file
	for lines := bufio.NewScanner(bytes.NewReader(results[0].Rows[0][content])); lines.Scan(); {
		var of int
		var at string
		if n, _ := fmt.Sscan(lines.Text(), &of, &at); n == 2 && of == earlier {
			return changes.ParseLSN(at)
		}
	}
	return 0, nil
}
