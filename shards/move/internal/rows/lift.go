package rows

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
)

// liftQuery returns scripts for constraints that are NOT VALID. A copy does not check foreign keys.
var liftQuery = catalog.ConstraintScripts(`con.contype IN ('c', 'n') AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true'
  AND (c.oid IS NULL OR position(c.relpersistence IN $2) > 0)`)

// lifting runs fn in a transaction of the target in which the tables lack their NOT VALID constraints: these apply to
// new rows, and fn copies old ones.
func lifting(ctx context.Context, to pgx.Tx, schema string, which Tables, fn func() error) error {
	drop, add, err := lift(ctx, to.Conn(), schema, which)
	if err != nil {
		return err
	}
	if drop == "" {
		return fn()
	}
	if _, err := to.Conn().PgConn().Exec(ctx, drop).ReadAll(); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	_, err = to.Conn().PgConn().Exec(ctx, add).ReadAll()
	return err
}

// Lifts reports whether a copy of logged tables drops constraints while it runs.
func Lifts(ctx context.Context, target *pgx.Conn, schema string) (bool, error) {
	drop, _, err := lift(ctx, target, schema, Logged)
	return drop != "", err
}

// lift returns a script that drops the NOT VALID constraints, and one that adds them again.
func lift(ctx context.Context, to *pgx.Conn, schema string, which Tables) (drop, add string, err error) {
	err = to.QueryRow(ctx, liftQuery, schema, which).Scan(&drop, &add)
	return drop, add, err
}
