{{/* Locks that only the owner of the table can take. Anybody who can connect can take an advisory lock, so an advisory lock
counts only if its holder may create in the schema. LOCK TABLE needs privileges that kiloshard grant does not grant. Its mode
conflicts with itself and with a VACUUM of the table, and with no query. Nothing here waits. */ -}}
{{define "try shard"}}
  got := true;
  BEGIN
    EXECUTE pg_catalog.format('LOCK TABLE %I.schema_version IN {{if .Beside}}SHARE{{else}}SHARE UPDATE EXCLUSIVE{{end}} MODE NOWAIT', schema);
  EXCEPTION
    WHEN lock_not_available THEN got := false;
    WHEN undefined_table OR invalid_schema_name{{if .Beside}} OR insufficient_privilege{{end}} THEN NULL;
  END;
  IF got AND NOT pg_catalog.pg_try_advisory_xact_lock{{if .Beside}}_shared{{end}}({{.ShardLock}}, shard) THEN
    got := NOT EXISTS (SELECT{{template "shard holders" .}});
  END IF;
{{end}}

{{- define "shard holders"}} FROM pg_catalog.pg_locks l
      JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid AND a.datid OPERATOR(pg_catalog.=) l.database
      WHERE a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() AND l.granted AND l.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
        AND (l.locktype OPERATOR(pg_catalog.=) 'advisory' AND l.objsubid OPERATOR(pg_catalog.=) 2 AND l.classid OPERATOR(pg_catalog.=) {{.ShardLock}}::oid
          AND l.objid OPERATOR(pg_catalog.=) {{.ShardText}}::oid{{if .Beside}} AND l.mode OPERATOR(pg_catalog.=) 'ExclusiveLock'{{end}}
          AND coalesce(pg_catalog.has_schema_privilege(a.usesysid, pg_catalog.to_regnamespace({{.SchemaText}})::oid, 'create'),
            pg_catalog.has_database_privilege(a.usesysid, a.datid, 'create'))
{{- if .Tables}}
        OR l.locktype OPERATOR(pg_catalog.=) 'relation' AND l.relation OPERATOR(pg_catalog.=) pg_catalog.to_regclass({{.SchemaText}} OPERATOR(pg_catalog.||) '.schema_version')
          AND l.mode IN ('ShareUpdateExclusiveLock', 'ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'){{end}})
{{- end}}

{{- define "try shard script" -}}
DO $kiloshard$
DECLARE
  shard  CONSTANT int := {{.Shard}};
  schema CONSTANT text := '{{.Schema}}';
  got    boolean;
BEGIN
{{- template "try shard" .}}
  PERFORM pg_catalog.set_config('kiloshard.got', got::text, true);
END
$kiloshard$;
SELECT pg_catalog.current_setting('kiloshard.got')
{{- end}}

{{- define "mark shard" -}}
SELECT (pg_catalog.pg_try_advisory_lock({{.ShardLock}}, {{.Shard}}) OR NOT EXISTS (SELECT{{template "shard holders" .}}))::text
{{- end}}

{{- define "name shard holders" -}}
SELECT coalesce(pg_catalog.string_agg(DISTINCT pg_catalog.format('process %s, role %s (%s, %s): %s', a.pid, coalesce(a.usename, '?'),
  coalesce(nullif(a.application_name, ''), 'without a name'), coalesce(a.state, a.backend_type), pg_catalog.left(pg_catalog.regexp_replace(a.query, '\s+', ' ', 'g'), 80)), '; '), ''){{template "shard holders" .}}
{{- end}}

{{- define "one at a time"}}
-- Waits up to 5 seconds for an installation under way, and blocks others until this transaction ends. Only the owner of
-- the table can lock it.
DO $kiloshard$
DECLARE
  before CONSTANT text := pg_catalog.current_setting('lock_timeout');
BEGIN
  IF pg_catalog.to_regclass('kiloshard.lock_install') IS NULL THEN
    PERFORM pg_catalog.set_config('lock_timeout', '5s', true);
    CREATE TABLE IF NOT EXISTS kiloshard.lock_install ();
    CREATE TABLE IF NOT EXISTS kiloshard.lock_create (); -- for commands that make or upgrade shards
    PERFORM pg_catalog.set_config('lock_timeout', before, true);
  END IF;
EXCEPTION WHEN duplicate_table OR unique_violation THEN NULL; -- another session created it first
END
$kiloshard$;
DO $kiloshard$
DECLARE
  holder text;
BEGIN
  FOR i IN 1 .. 250 LOOP
    BEGIN
      LOCK TABLE kiloshard.lock_install IN SHARE UPDATE EXCLUSIVE MODE NOWAIT;
      RETURN;
    EXCEPTION WHEN lock_not_available THEN PERFORM pg_catalog.pg_sleep(0.02);
    END;
  END LOOP;
  SELECT{{template "table holder"}} INTO holder{{template "table holders" "kiloshard.lock_install"}} LIMIT 1;
  RAISE EXCEPTION 'the lock for installing the helper schema is held by %', coalesce(holder, 'a session that has just ended')
    USING ERRCODE = 'object_in_use'; -- not lock_not_available, which callers retry: this has waited long enough
END
$kiloshard$;
{{- end}}

{{- define "table holder"}} pg_catalog.format('process %s, role %s from %s, since %s', l.pid, coalesce(a.usename, '?'),
    coalesce(pg_catalog.host(a.client_addr), 'a local socket'), pg_catalog.to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ')){{end}}
{{- define "table holders"}} FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid
  WHERE l.locktype OPERATOR(pg_catalog.=) 'relation' AND l.granted AND l.mode OPERATOR(pg_catalog.=) 'ShareUpdateExclusiveLock'
    AND l.relation OPERATOR(pg_catalog.=) pg_catalog.to_regclass('{{.}}')
    AND l.database OPERATOR(pg_catalog.=) (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
{{- end}}
