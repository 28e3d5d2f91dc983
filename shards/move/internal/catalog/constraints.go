package catalog

// ConstraintScripts returns a query for two scripts: one drops some constraints of a schema ($1), and the other makes them again as they were. Both are empty if
// there are none. Constraints of partitions and children go with their parents'; a partition's own comes back first, and becomes part of its parent's.
func ConstraintScripts(where string) string {
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
