package ids

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// walPosition returns how many bytes of WAL the server has written since initdb.
func walPosition(ctx context.Context, conn *pgx.Conn) (bytes int64, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint").Scan(&bytes)
	return bytes, err
}
