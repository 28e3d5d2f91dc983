package rows

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// Truncate returns a statement that truncates tables of a schema if one of them has rows: all at once, because Postgres
// does not truncate a table without the tables that refer to it.
func Truncate(schema string, which Tables) string {
	return fmt.Sprintf(`DO $kiloshard$ DECLARE t text; BEGIN
  SELECT string_agg('ONLY ' || c.oid::regclass, ', ') INTO t FROM pg_class c WHERE c.relnamespace = '%s'::regnamespace AND c.relkind = 'r' AND position(c.relpersistence IN '%s') > 0
    HAVING bool_or(pg_relation_size(c.oid) > 0);
  IF t IS NOT NULL THEN EXECUTE 'TRUNCATE ' || t; END IF;
END $kiloshard$;
`, schema, which)
}

// Empty removes the rows that earlier tries have copied into tables of the target.
func Empty(ctx context.Context, target *pgx.Conn, schema string, which Tables) error {
	return session.InTx(ctx, target, func(to pgx.Tx) error {
		if _, err := to.Exec(ctx, asReplica); err != nil {
			return err
		}
		_, err := to.Exec(ctx, Truncate(schema, which))
		return err
	})
}
