{{/* One row for each object of another role where only Kiloshard's own should be. pg_has_role says that a superuser is a
member of every role, so membership is looked up here. Before Postgres 16 a member can always inherit or take the role. */ -}}
{{define "foreign"}}
WITH RECURSIVE mine (role) AS (
  SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user
  UNION
  SELECT m.roleid FROM pg_catalog.pg_auth_members m JOIN mine ON mine.role = m.member
  WHERE coalesce((to_jsonb(m) ->> 'inherit_option')::boolean OR (to_jsonb(m) ->> 'set_option')::boolean, true)
), trusted AS (
  SELECT role FROM mine UNION SELECT oid FROM pg_catalog.pg_roles WHERE rolsuper
{{- if .DatabaseOwner}}
  UNION SELECT d.datdba FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles r ON r.rolname = current_user AND NOT r.rolsuper
  WHERE d.datname = current_database()
{{- end}}
), schemas AS (
  -- Without fences of shards that have moved away: their views are there on purpose.
  SELECT n.*, n.nspname IN ('kiloshard', 'kiloshard_locks') AS helper FROM pg_catalog.pg_namespace n WHERE (n.nspname IN ('kiloshard', 'kiloshard_locks') OR {{.Shards}})
    AND NOT (n.nspowner IN (SELECT role FROM trusted) AND EXISTS (SELECT FROM pg_catalog.pg_class f
      WHERE f.relnamespace = n.oid AND f.relname = '{{.FenceMark}}' AND f.relkind = 'v' AND f.relowner IN (SELECT role FROM trusted)))
), relations AS (
  SELECT c.*, s.nspname, s.helper, format('%I.%I', s.nspname, c.relname) AS name
  FROM pg_catalog.pg_class c JOIN schemas s ON s.oid = c.relnamespace
  WHERE c.relkind <> 'c' AND CASE WHEN s.helper THEN c.relname IN ('settings', 'ledger', 'maps', 'counters', 'moves', 'move_markers', 'audit') OR c.relname ~ '^(setter_[0-9]+|lock_(install|create)|next_.*_id_seq)$'
    ELSE c.relname = ANY ({{names .Relations}}) END
), functions AS (
  SELECT p.oid, p.proowner, s.nspname FROM pg_catalog.pg_proc p JOIN schemas s ON s.oid = p.pronamespace
  WHERE s.helper OR p.proname = ANY ({{names .Functions}})
), grants AS (
  SELECT nspname AS schema, 'schema ' || quote_ident(nspname) AS name, a.grantee, a.privilege_type FROM schemas, aclexplode(nspacl) a WHERE a.privilege_type = 'CREATE' OR nspname = 'kiloshard_locks'
  UNION ALL
  SELECT nspname, name, a.grantee, a.privilege_type FROM relations, aclexplode(relacl) a
  WHERE a.privilege_type IN ('TRIGGER', 'TRUNCATE', 'MAINTAIN', 'REFERENCES') OR helper AND relname ~ '^(setter|lock)_'
    OR a.privilege_type <> 'SELECT' AND relname IN ('settings', 'ledger', 'moves', 'move_markers', 'audit', 'schema_version')
), found (kind, schema, what, expected) AS (
  SELECT 'owner', nspname, format('schema %I belongs to role %s', nspname, nspowner::regrole), 'owner'
  FROM schemas WHERE nspowner NOT IN (SELECT role FROM trusted)
  UNION ALL
  SELECT 'owner', nspname, name || ' belongs to role ' || relowner::regrole, 'owner' FROM relations WHERE relowner NOT IN (SELECT role FROM trusted)
  UNION ALL
  SELECT 'owner', nspname, format('function %s belongs to role %s', oid::regprocedure, proowner::regrole), 'owner'
  FROM functions WHERE proowner NOT IN (SELECT role FROM trusted)
  UNION ALL
  SELECT 'kind', nspname, name || ' is no plain table', 'the table that kiloshard makes'
  FROM relations WHERE relname NOT LIKE '%\_seq' AND (relkind <> 'r' OR relhassubclass OR oid IN (SELECT inhrelid FROM pg_catalog.pg_inherits))
  UNION ALL
  SELECT 'trigger', nspname, format('trigger %I on %s', t.tgname, name), 'no trigger there'
  FROM relations r JOIN pg_catalog.pg_trigger t ON t.tgrelid = r.oid
  WHERE NOT t.tgisinternal AND NOT (helper AND relname = 'maps' AND t.tgfoid IN (SELECT f.oid FROM pg_catalog.pg_proc f
    WHERE f.pronamespace = relnamespace AND f.proname IN ('keep_maps', 'note_map')))
  UNION ALL
  -- Before Postgres 18 the triggers of its table, which a cascade fires, run with the rights of whoever changes ours.
  SELECT 'trigger', nspname, format('foreign key %I of %s on %s', k.conname, k.conrelid::regclass, name), 'none of another role there'
  FROM relations r JOIN pg_catalog.pg_constraint k ON k.confrelid = r.oid AND k.contype = 'f' JOIN pg_catalog.pg_class t ON t.oid = k.conrelid
  WHERE t.relowner NOT IN (SELECT role FROM trusted)
  UNION ALL
  SELECT 'trigger', '', format('event trigger %I belongs to role %s', evtname, evtowner::regrole), 'owner' FROM pg_catalog.pg_event_trigger WHERE evtowner NOT IN (SELECT role FROM trusted)
  UNION ALL
  SELECT 'rule', nspname, format('rule %I on %s', w.rulename, name), 'no rule there' FROM relations r JOIN pg_catalog.pg_rewrite w ON w.ev_class = r.oid
  UNION ALL
  SELECT 'policy', nspname, name || ' has row-level security', 'none' FROM relations WHERE relrowsecurity
  UNION ALL
  SELECT 'default', nspname, format('column %I of %s has the default %s', a.attname, name, pg_get_expr(d.adbin, d.adrelid)), 'no such default'
  FROM relations r JOIN pg_catalog.pg_attrdef d ON d.adrelid = r.oid JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = d.adnum
  WHERE (relname, a.attname, pg_get_expr(d.adbin, d.adrelid)) NOT IN (
    ('settings', 'one', 'true'), ('settings', 'type_bits', '0'), ('ledger', 'role', 'SESSION_USER'), ('maps', 'role', 'SESSION_USER'),
    ('maps', 'made_at', 'clock_timestamp()'), ('kiloshard_directory', 'since', 'now()'), ('kiloshard_usage', 'one', 'true'))
  UNION ALL
  SELECT 'grant', schema, format('%s: %s may %s', name, CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE 'role ' || grantee::regrole END, privilege_type), 'no such grant'
  FROM grants WHERE grantee NOT IN (SELECT role FROM trusted)
)
SELECT kind, schema::text, what, CASE expected WHEN 'owner' THEN format('role %I, one that it is a member of, or a superuser', current_user) ELSE expected END AS expected
FROM found
{{- end}}
{{- define "refuse foreign"}}
-- Refuses objects of other roles before any of them is used. The search_path lasts for the rest of the transaction.
DO $kiloshard$
DECLARE
  wrong record;
BEGIN
  PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  SELECT * INTO wrong FROM ({{template "foreign" .}}) f WHERE kind <> 'grant' ORDER BY kind <> 'owner', what NOT LIKE 'schema %', what LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '%: expected %', wrong.what, wrong.expected USING ERRCODE = '{{.Refused}}',
      HINT = 'Another role may have made it. Inspect it, drop it or change its owner, and retry.';
  END IF;
END
$kiloshard$;
{{end}}

{{- define "helper schema"}}
DO $kiloshard$
BEGIN
  IF pg_catalog.to_regnamespace('kiloshard') IS NULL THEN -- only a missing schema needs the right to create one
    CREATE SCHEMA kiloshard;
  END IF;
EXCEPTION WHEN duplicate_schema OR unique_violation THEN NULL; -- another session created it first; its owner is checked below
END
$kiloshard$;
{{template "refuse foreign" .}}
{{- end}}
