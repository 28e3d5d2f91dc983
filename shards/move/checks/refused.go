package checks

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// unvalidatedQuery names the constraints of a schema that were never validated, and has for each a query for a row that violates it. It has none
// where that would call functions of somebody's, or look into all columns of a domain.
const unvalidatedQuery = `
SELECT con.conname::text, coalesce(c.relname, con.contypid::regtype::text)::text,
  CASE WHEN c.oid IS NOT NULL AND has_schema_privilege(c.relnamespace, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_constraint'::regclass AND d.objid = con.oid AND d.refclassid <> 'pg_class'::regclass)
  THEN format('SELECT EXISTS (SELECT FROM %s WHERE NOT (%s))', c.oid::regclass, coalesce(pg_get_expr(con.conbin, c.oid),
    (SELECT format('%I IS NOT NULL', attname) FROM pg_attribute WHERE attrelid = c.oid AND attnum = con.conkey[1]))) ELSE '' END
FROM pg_constraint con LEFT JOIN pg_class c ON c.oid = con.conrelid
WHERE con.connamespace = to_regnamespace($1) AND con.contype IN ('c', 'n') AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true'
ORDER BY 2, 1`

// unvalidated finds rows that the target would refuse: a constraint that is NOT VALID there holds for each row that is copied.
func (s *Shard) unvalidated(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, unvalidatedQuery, s.Schema)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Name, Of, Query string }])
	if err != nil {
		return err
	}
	for _, c := range found {
		if c.Query == "" {
			s.note("constraint %s of %s is NOT VALID: a row that violates it would be refused by the target", c.Name, c.Of)
			continue
		}
		var violated bool
		if err := conn.QueryRow(ctx, c.Query).Scan(&violated); err != nil {
			return err
		}
		if violated {
			s.problem("constraint %s of %s is NOT VALID, and the target would refuse the rows that violate it: expected none", c.Name, c.Of)
		}
	}
	return nil
}

// bareNamesQuery notes functions of a schema that are called for each row that is written, and that seem to name what is in the schema without
// its name: rows are written to the target with a search_path of pg_catalog only.
const bareNamesQuery = `
SELECT DISTINCT false, format('%s calls %s, which names %s without its schema: the copy would not find it on the target; expected the schema, or a search_path of the function''s own',
  pg_describe_object(d.classid, d.objid, 0), p.oid::regprocedure, bare.name)
FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid JOIN pg_language l ON l.oid = p.prolang
CROSS JOIN LATERAL (
  SELECT min(name) FROM (
    SELECT relname FROM pg_class WHERE relnamespace = p.pronamespace AND relkind IN ('r', 'v', 'm', 'S') UNION ALL
    SELECT proname FROM pg_proc WHERE pronamespace = p.pronamespace UNION ALL
    SELECT typname FROM pg_type WHERE typnamespace = p.pronamespace
  ) names (name) WHERE name ~ '^\w+$' AND p.prosrc ~ ('(^|[^.\w"$])' || name || '\M')
) bare (name)
WHERE d.refclassid = 'pg_proc'::regclass AND p.pronamespace = to_regnamespace($1) AND bare.name IS NOT NULL
  AND p.prosqlbody IS NULL AND l.lanname NOT IN ('internal', 'c') AND NOT EXISTS (SELECT FROM unnest(p.proconfig) o WHERE o LIKE 'search\_path=%')
  AND (d.classid = 'pg_constraint'::regclass OR d.classid = 'pg_class'::regclass AND d.objid IN (SELECT indexrelid FROM pg_index)
    OR d.classid = 'pg_attrdef'::regclass AND d.objid IN (
      SELECT f.oid FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE a.attgenerated <> ''))`
