{{/* The privileges of a service's role in shards, on existing and on later tables. A reader only reads. Only the owner may
change a version. */ -}}
{{define "grant"}}
DO $kiloshard$
DECLARE
  shard   name;
  role    CONSTANT name := {{literal .Role}};
  tables  CONSTANT text := {{if .ReadOnly}}'SELECT'{{else}}'SELECT, INSERT, UPDATE, DELETE'{{end}};
BEGIN
  FOREACH shard IN ARRAY {{names .Schemas}} LOOP
    EXECUTE pg_catalog.format('GRANT USAGE ON SCHEMA %I TO %I', shard, role);
    EXECUTE pg_catalog.format('GRANT %s ON ALL TABLES IN SCHEMA %I TO %I', tables, shard, role);
    EXECUTE pg_catalog.format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT %s ON TABLES TO %I', shard, tables, role);
{{- if not .ReadOnly}}
    EXECUTE pg_catalog.format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', shard, role);
    EXECUTE pg_catalog.format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I GRANT USAGE ON SEQUENCES TO %I', shard, role);
    IF pg_catalog.to_regclass(pg_catalog.format('%I.schema_version', shard)) IS NOT NULL THEN
      EXECUTE pg_catalog.format('REVOKE INSERT, UPDATE, DELETE ON %I.schema_version FROM %I', shard, role);
    END IF;
{{- end}}
  END LOOP;
END
$kiloshard$;
{{end}}

{{- define "grant helper"}}
DO $kiloshard$
DECLARE
  role    CONSTANT name := {{literal .Role}};
  drawn   pg_catalog.regprocedure; -- a function of a generator that draws with its owner's rights
  counted pg_catalog.regclass;     -- the sequence of a generator
BEGIN
  IF NOT pg_catalog.has_database_privilege(role, pg_catalog.current_database(), 'CONNECT') THEN
    EXECUTE pg_catalog.format('GRANT CONNECT ON DATABASE %I TO %I', pg_catalog.current_database(), role);
  END IF;
  EXECUTE pg_catalog.format('GRANT USAGE ON SCHEMA kiloshard TO %I', role);
{{- if not .ReadOnly}}
  FOR counted IN SELECT c.oid FROM pg_catalog.pg_class c
    WHERE c.relnamespace = 'kiloshard'::pg_catalog.regnamespace AND c.relkind = 'S' AND c.relname ~ '^next_.*_id_seq$' LOOP
    EXECUTE pg_catalog.format('GRANT USAGE ON SEQUENCE %s TO %I', counted, role);
  END LOOP;
  FOR drawn IN SELECT p.oid FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = 'kiloshard'::pg_catalog.regnamespace AND p.prosecdef AND p.proname ~ '^next_.*_ids?$' LOOP
    EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %I', drawn, role);
  END LOOP;
{{- end}}
END
$kiloshard$;
{{end}}

{{- define "revoke"}}
DO $kiloshard$
DECLARE
  shard name;
  role  CONSTANT name := {{literal .Role}};
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
    RETURN; -- it was dropped, and its rights with it
  END IF;
  FOREACH shard IN ARRAY {{names .Schemas}} LOOP
    EXECUTE pg_catalog.format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I REVOKE ALL ON TABLES FROM %I', shard, role);
    EXECUTE pg_catalog.format('ALTER DEFAULT PRIVILEGES IN SCHEMA %I REVOKE ALL ON SEQUENCES FROM %I', shard, role);
    EXECUTE pg_catalog.format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', shard, role);
    EXECUTE pg_catalog.format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM %I', shard, role);
    EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA %I FROM %I', shard, role);
  END LOOP;
END
$kiloshard$;
{{end}}

{{- define "revoke helper"}}
DO $kiloshard$
DECLARE
  role CONSTANT name := {{literal .Role}};
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
    RETURN; -- it was dropped, and its rights with it
  END IF;
  EXECUTE pg_catalog.format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA kiloshard FROM %I', role);
  EXECUTE pg_catalog.format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA kiloshard FROM %I', role);
  EXECUTE pg_catalog.format('REVOKE ALL ON SCHEMA kiloshard FROM %I', role);
END
$kiloshard$;
{{end -}}
