package move

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/rows"
)

// constraintScripts writes what drops some constraints of a schema ($1), and what makes them again as they were. Either is empty if there are none.
const constraintScripts = `
SELECT coalesce(string_agg(format('ALTER %s DROP CONSTRAINT %I;', of.name, conname), ''), ''), coalesce(string_agg(
  format('ALTER %s ADD CONSTRAINT %I %s;', of.name, conname, pg_get_constraintdef(con.oid)) || coalesce(format('COMMENT ON CONSTRAINT %I ON %s IS %L;', conname,
    regexp_replace(of.name, '^TABLE ', ''), obj_description(con.oid, 'pg_constraint')), ''), '' ORDER BY con.oid), '')
FROM pg_constraint con LEFT JOIN pg_class c ON c.oid = con.conrelid
CROSS JOIN LATERAL (SELECT CASE WHEN c.oid IS NULL THEN 'DOMAIN ' || con.contypid::regtype ELSE 'TABLE ' || c.oid::regclass END) of (name)
WHERE con.connamespace = $1::regnamespace AND `

// liftQuery is that for constraints that are NOT VALID. Foreign keys are not heeded by a copy.
const liftQuery = constraintScripts + `con.contype IN ('c', 'n') AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true'
  AND (c.oid IS NULL OR position(c.relpersistence IN $2) > 0)`

// lifting runs fn in a transaction of the target in which tables have no constraints that are NOT VALID: these hold for new rows, and what fn copies
// are old ones.
func (j *job) lifting(ctx context.Context, to pgx.Tx, which rows.Tables, fn func() error) error {
	drop, add, err := j.liftScripts(ctx, to.Conn(), which)
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

// liftScripts returns what drops them, and what makes them again: empty if there are none.
func (j *job) liftScripts(ctx context.Context, to *pgx.Conn, which rows.Tables) (drop, add string, err error) {
	err = to.QueryRow(ctx, liftQuery, j.Schema, which).Scan(&drop, &add)
	return drop, add, err
}
