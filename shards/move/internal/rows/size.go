package rows

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Size returns how many bytes the tables of a schema take, without their indexes.
func Size(ctx context.Context, conn *pgx.Conn, schema string) (bytes int64, err error) {
	const query = `SELECT coalesce(sum(pg_table_size(oid)), 0)::bigint FROM pg_class WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'`
	err = conn.QueryRow(ctx, query, schema).Scan(&bytes)
	return bytes, err
}
