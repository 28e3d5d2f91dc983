package provision

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/sql"
)

// leaveMoves leaves out the schemas that are no shards although they are named like one: the fences of shards that have moved
// away, and what a move under way has made of a shard so far.
func (inv *inventory) leaveMoves(ctx context.Context, conn *pgx.Conn, pattern string) error {
	const query = `SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $2 AND c.relkind = 'v' AND n.nspname ~ $1`
	rows, err := conn.Query(ctx, query, pattern, sql.FenceMark)
	if err != nil {
		return err
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var ledger bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('kiloshard.moves') IS NOT NULL`).Scan(&ledger); err != nil {
		return err
	}
	if ledger && inv.usable() {
		rows, err := conn.Query(ctx, `SELECT schema::text FROM kiloshard.moves WHERE side = 'target' AND outcome IS NULL`)
		if err != nil {
			return err
		}
		made, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		left = append(left, made...)
	}
	for _, schema := range left {
		delete(inv.found, schema)
		delete(inv.schemas, schema)
	}
	return nil
}
