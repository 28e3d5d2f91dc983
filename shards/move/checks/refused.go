package checks

// unvalidatedQuery notes the constraints of domains that were never validated. Those of tables keep no row from its target: a change of one
// that violates them is refused by the source, too, but one of another column of a row with such a value of a domain is not. Its
// parameters: the schema, whether that is a problem, and for what.
const unvalidatedQuery = `
SELECT $2::boolean, format('constraint %s of domain %s is NOT VALID, so ' || $3::text, con.conname, t.typname)
FROM pg_constraint con JOIN pg_type t ON t.oid = con.contypid
WHERE con.connamespace = to_regnamespace($1) AND NOT con.convalidated AND coalesce(to_jsonb(con) ->> 'conenforced', 'true') = 'true' ORDER BY 2`

// bareNamesQuery notes functions of a schema that are called for each row that is written, and that seem to name what is in the schema without
// its name: rows are written to the target with a search_path of pg_catalog only.
const bareNamesQuery = `
SELECT DISTINCT false, format('%s calls %s, which names %s without its schema: the copy would not find it on the target; expected the schema, or a search_path of the function''s own',
  pg_describe_object(d.classid, d.objid, 0), p.oid::regprocedure, bare.name)
FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid JOIN pg_language l ON l.oid = p.prolang
CROSS JOIN LATERAL (
  SELECT min(name) FROM (
    SELECT relname FROM pg_class WHERE relnamespace = p.pronamespace AND relkind IN ('r', 'p', 'v', 'm', 'S') UNION ALL
    SELECT proname FROM pg_proc WHERE pronamespace = p.pronamespace UNION ALL
    SELECT typname FROM pg_type WHERE typnamespace = p.pronamespace
  ) names (name) WHERE name ~ '^\w+$' AND p.prosrc ~ ('(^|[^.\w"$])' || name || '\M')
) bare (name)
WHERE d.refclassid = 'pg_proc'::regclass AND p.pronamespace = to_regnamespace($1) AND bare.name IS NOT NULL
  AND p.prosqlbody IS NULL AND l.lanname NOT IN ('internal', 'c') AND NOT EXISTS (SELECT FROM unnest(p.proconfig) o WHERE o LIKE 'search\_path=%')
  AND (d.classid = 'pg_constraint'::regclass OR d.classid = 'pg_class'::regclass AND d.objid IN (SELECT indexrelid FROM pg_index)
    OR d.classid = 'pg_attrdef'::regclass AND d.objid IN (
      SELECT f.oid FROM pg_attrdef f JOIN pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum WHERE a.attgenerated <> ''))`
