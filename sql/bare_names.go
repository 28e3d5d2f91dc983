package sql

// BareNamesQuery finds functions of a schema that are called for each row that is written, and that seem to name without its schema what is
// in this one or of an extension. Where rows are written with an empty search_path, as by a move and by pg_restore, they do not find it. Its
// parameter is the schema; its columns are what calls the function, the function, and a name.
const BareNamesQuery = `
WITH called AS MATERIALIZED (
  SELECT DISTINCT d.classid, d.objid, p.oid, p.prosrc
  FROM pg_depend i JOIN pg_proc p ON p.oid = i.objid JOIN pg_language l ON l.oid = p.prolang
  JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = p.oid
  WHERE i.classid = 'pg_proc'::regclass AND i.refclassid = 'pg_namespace'::regclass AND i.refobjid = to_regnamespace($1)
    AND p.prosqlbody IS NULL AND l.lanname NOT IN ('internal', 'c') AND NOT EXISTS (SELECT FROM unnest(p.proconfig) o WHERE o LIKE 'search\_path=%')
    AND (d.classid = 'pg_constraint'::regclass OR d.classid = 'pg_class'::regclass AND d.objid IN (SELECT indexrelid FROM pg_index)
      OR d.classid = 'pg_attrdef'::regclass AND d.objid IN (
        SELECT f.oid FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE a.attgenerated <> ''))
), inside AS MATERIALIZED (
  SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = to_regnamespace($1)
), of_extension AS MATERIALIZED (
  SELECT classid, objid FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
), names (name, after) AS MATERIALIZED (
  SELECT c.relname, '\M' FROM inside JOIN pg_class c ON c.oid = objid WHERE classid = 'pg_class'::regclass AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
  UNION SELECT t.typname, '\M' FROM inside JOIN pg_type t ON t.oid = objid WHERE classid = 'pg_type'::regclass
  UNION SELECT p.proname, '\s*\(' FROM inside JOIN pg_proc p ON p.oid = objid WHERE classid = 'pg_proc'::regclass
  UNION SELECT t.typname, '\M' FROM of_extension JOIN pg_type t ON t.oid = objid WHERE classid = 'pg_type'::regclass AND t.typnamespace <> 'pg_catalog'::regnamespace
  UNION SELECT p.proname, '\s*\(' FROM of_extension JOIN pg_proc p ON p.oid = objid WHERE classid = 'pg_proc'::regclass
    AND NOT EXISTS (SELECT FROM pg_proc own WHERE own.proname = p.proname AND own.pronamespace = 'pg_catalog'::regnamespace)
)
SELECT DISTINCT pg_describe_object(c.classid, c.objid, 0), c.oid::regprocedure::text, bare.name::text
FROM called c CROSS JOIN LATERAL (
  SELECT min(name) FROM names WHERE name ~ '^\w+$' AND c.prosrc ~ ('(^|[^.\w"$])' || name || after)
) bare (name)
WHERE bare.name IS NOT NULL`
