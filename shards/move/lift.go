package move

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/rows"
)

// constraintScripts returns a query that writes what drops some constraints of a schema ($1), and what makes them again as they were. Either is empty if
// there are none. Those of partitions and children go with their parents'; a partition's own comes back first, and becomes part of its parent's.
func constraintScripts(where string) string {
	return `
WITH RECURSIVE found (oid, level) AS (
  SELECT con.oid, 0 FROM pg_constraint con LEFT JOIN pg_class c ON c.oid = con.conrelid WHERE con.connamespace = $1::regnamespace AND con.coninhcount = 0 AND ` + where + `
  UNION
  SELECT k.oid, f.level + 1 FROM found f JOIN pg_constraint u ON u.oid = f.oid JOIN pg_inherits i ON i.inhparent = u.conrelid
  JOIN pg_constraint k ON k.conrelid = i.inhrelid AND CASE u.contype WHEN 'f' THEN k.conparentid = u.oid ELSE k.conname = u.conname AND k.contype = u.contype END
), tree (oid, level) AS (
  SELECT oid, max(level) FROM found GROUP BY oid
)
SELECT coalesce(string_agg(format('ALTER %s DROP CONSTRAINT %I;', of.name, conname), '') FILTER (WHERE level = 0), ''), coalesce(
  string_agg(format('ALTER %s ADD CONSTRAINT %I %s;', of.name, conname, pg_get_constraintdef(con.oid)), '' ORDER BY level DESC, con.oid) FILTER (WHERE conislocal OR relispartition), '') || coalesce(
  string_agg(format('COMMENT ON CONSTRAINT %I ON %s IS %L;', conname, regexp_replace(of.name, '^TABLE ', ''), obj_description(con.oid, 'pg_constraint')), '')
    FILTER (WHERE obj_description(con.oid, 'pg_constraint') IS NOT NULL), '')
FROM tree JOIN pg_constraint con USING (oid) LEFT JOIN pg_class c ON c.oid = con.conrelid
CROSS JOIN LATERAL (SELECT CASE WHEN c.oid IS NULL THEN 'DOMAIN ' || con.contypid::regtype ELSE 'TABLE ' || c.oid::regclass END) of (name)`
}

// liftQuery is that for constraints that are NOT VALID. Foreign keys are not heeded by a copy.
var liftQuery = constraintScripts(`con.contype IN ('c', 'n') AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true'
  AND (c.oid IS NULL OR position(c.relpersistence IN $2) > 0)`)

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
