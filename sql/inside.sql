{{/* What a migration changed, and in which schemas. Postgres holds a transaction's locks on relations, and on objects that it
drops, to its end, also those of subtransactions. Functions, types, roles and other objects without such a lock are found in
the catalogs, by the rows that this transaction wrote. */ -}}
{{define "inside"}}
-- watch_locks opens a cursor. Read at the end of the transaction, it returns the objects that the transaction has locked for
-- a change by then, with the schema that each was in when watch_locks ran, and the tables that keys of these referenced: a
-- cursor keeps its snapshot, so it also sees what was dropped since. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.watch_locks() RETURNS void LANGUAGE plpgsql AS $kiloshard$
DECLARE
  locked refcursor := 'kiloshard_locked';
BEGIN
  OPEN locked FOR
    WITH held AS MATERIALIZED (
      SELECT DISTINCT coalesce(s.classid, 'pg_class'::regclass) AS class, coalesce(s.objid, s.relation) AS object, s.mode
      FROM pg_lock_status() s
      WHERE s.pid = pg_backend_pid() AND s.granted AND s.locktype IN ('relation', 'object') AND s.mode NOT IN ('AccessShareLock', 'RowShareLock')
    ), found (class, object, mode, place, name) AS (
      SELECT h.class, h.object, h.mode, coalesce(c.relnamespace, d.refobjid), CASE WHEN h.class = 'pg_namespace'::regclass THEN 'schema ' ELSE 'table ' END || CASE WHEN c.oid IS NOT NULL THEN format('%I.%I', n.nspname, c.relname) ELSE quote_ident(n.nspname) END
      FROM held h
      LEFT JOIN pg_class c ON h.class = 'pg_class'::regclass AND c.oid = h.object
      LEFT JOIN pg_namespace n ON n.oid = CASE WHEN h.class = 'pg_namespace'::regclass THEN h.object ELSE c.relnamespace END
      LEFT JOIN pg_depend d ON h.class <> 'pg_class'::regclass AND d.classid = h.class AND d.objid = h.object AND d.objsubid = 0
        AND d.refclassid = 'pg_namespace'::regclass
      UNION ALL
      SELECT 0, k.confrelid, 'key', NULL, NULL FROM held h JOIN pg_constraint k ON h.class = 'pg_class'::regclass AND k.conrelid = h.object
      WHERE k.contype = 'f'
    )
    SELECT array_agg(f.class::oid), array_agg(f.object), array_agg(f.mode), array_agg(f.place), array_agg(f.name) FROM found f;
END
$kiloshard$;

-- changed_objects returns the objects that this transaction created, altered, dropped or wrote to since watch_locks, each
-- with its schema, or 0 if it is in none, as a role is. It does not return the shard's version table, temporary tables, what
-- was only read, sequences that values were drawn from, tables that keys of the shard's tables reference, nor Kiloshard's
-- rows. The schema is the shard's, or null for none. Unless every is true, or a statement wrote to one of the catalogs itself, it reads a catalog only if the transaction wrote to it by the server's counters, and none that
-- each CREATE TABLE writes to: it may then miss a type, and a GRANT on a relation. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.changed_objects(schema text, every boolean)
RETURNS TABLE (class oid, object oid, place oid, name text) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $kiloshard$
#variable_conflict use_column
DECLARE
  home    CONSTANT oid := coalesce(to_regnamespace(schema), 0);
  version CONSTANT oid := coalesce(to_regclass(quote_ident(schema) || '.schema_version'), 0);
  skipped CONSTANT oid[] := ARRAY(SELECT n.oid FROM pg_namespace n WHERE n.nspname IN ('kiloshard', 'kiloshard_locks', 'pg_toast'));
  -- Rows of this transaction and its subtransactions: not older than the transaction, visible, and not committed.
  mine    CONSTANT text := 'age(x.xmin) <= 0 AND CASE WHEN age(x.xmin) = 0 THEN true'
    ' WHEN $1 - age(x.xmin) >= s.next THEN $1 - age(x.xmin) < s.next + 1000000' -- else a row frozen billions of transactions ago
    ' ELSE pg_xact_status(($1 - age(x.xmin))::text::xid8) = ''in progress'' END';
  top     CONSTANT bigint := pg_current_xact_id()::text::bigint;
  counts  CONSTANT boolean := current_setting('track_counts') = 'on';
  locked  refcursor := 'kiloshard_locked';
  classes oid[];
  objects oid[];
  modes   text[];
  places  oid[];
  names   text[];
  keys    oid[]; -- tables that keys of the shard's tables reference, or referenced
  catalog record;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_cursors c WHERE c.name = 'kiloshard_locked') THEN -- closed by the file, or outside a transaction block
    PERFORM kiloshard.watch_locks();
  END IF;
  FETCH locked INTO classes, objects, modes, places, names;
  CLOSE locked;
  every := every OR EXISTS ( -- DDL gives these locks back, an UPDATE keeps them
    SELECT FROM unnest(classes, objects) l (class, object) WHERE l.class = 'pg_class'::regclass
    AND l.object IN ('pg_class'::regclass, 'pg_type'::regclass, 'pg_index'::regclass, 'pg_attribute'::regclass, 'pg_constraint'::regclass, 'pg_trigger'::regclass));
  keys := ARRAY(
    SELECT l.object FROM unnest(classes, objects) l (class, object) WHERE l.class = 0 AND home <> 0
    UNION
    SELECT k.confrelid FROM unnest(classes, objects) l (class, object)
    JOIN pg_constraint k ON l.class = 'pg_class'::regclass AND k.conrelid = l.object AND k.connamespace = home WHERE k.contype = 'f');

  RETURN QUERY
    SELECT DISTINCT l.class, l.object, p.place, l.name
    FROM unnest(classes, objects, modes, places, names) l (class, object, mode, place, name)
    LEFT JOIN pg_class c ON l.class = 'pg_class'::regclass AND c.oid = l.object
    LEFT JOIN pg_depend d ON l.class <> 'pg_class'::regclass AND d.classid = l.class AND d.objid = l.object AND d.objsubid = 0
      AND d.refclassid = 'pg_namespace'::regclass
    LEFT JOIN pg_index i ON i.indexrelid = c.oid
    CROSS JOIN LATERAL (VALUES (l.place), (coalesce(c.relnamespace, d.refobjid)), (CASE
      WHEN l.class = 'pg_namespace'::regclass THEN l.object
      WHEN c.relisshared OR l.class IN ('pg_extension'::regclass, 'pg_language'::regclass, 'pg_event_trigger'::regclass, 'pg_publication'::regclass,
        'pg_foreign_data_wrapper'::regclass, 'pg_foreign_server'::regclass, 'pg_am'::regclass, 'pg_authid'::regclass, 'pg_database'::regclass) THEN 0
      END)) p (place)
    WHERE l.class <> 0 AND l.object <> 0 AND p.place IS NOT NULL AND NOT p.place = ANY (skipped)
      AND CASE WHEN c.relnamespace = 'pg_catalog'::regnamespace OR l.place = 'pg_catalog'::regnamespace
        THEN p.place = 0 AND c.relname NOT IN ('pg_shdepend', 'pg_shdescription', 'pg_shseclabel') ELSE true END
      AND c.relpersistence IS DISTINCT FROM 't' AND (c.relkind = 'S' AND l.mode = 'RowExclusiveLock') IS NOT true
      AND (p.place <> home AND l.class = 'pg_class'::regclass AND l.object = ANY (keys)) IS NOT true
      AND (version IN (l.object, i.indrelid)) IS NOT true;

  FOR catalog IN
    SELECT t.catalog, t.place, t.oid FROM (VALUES
      ('pg_namespace'::regclass, 'x.oid', true), ('pg_extension'::regclass, '0', true), ('pg_language'::regclass, '0', true), ('pg_event_trigger'::regclass, '0', true),
      ('pg_publication'::regclass, '0', true), ('pg_foreign_data_wrapper'::regclass, '0', true), ('pg_foreign_server'::regclass, '0', true), ('pg_am'::regclass, '0', true),
      ('pg_database'::regclass, '0', true), ('pg_tablespace'::regclass, '0', true), ('pg_db_role_setting'::regclass, '0', false), ('pg_parameter_acl'::regclass, '0', true),
      ('pg_default_acl'::regclass, 'x.defaclnamespace', true), ('pg_proc'::regclass, 'x.pronamespace', true), ('pg_operator'::regclass, 'x.oprnamespace', true),
      ('pg_opclass'::regclass, 'x.opcnamespace', true), ('pg_opfamily'::regclass, 'x.opfnamespace', true), ('pg_collation'::regclass, 'x.collnamespace', true),
      ('pg_conversion'::regclass, 'x.connamespace', true), ('pg_ts_config'::regclass, 'x.cfgnamespace', true), ('pg_ts_dict'::regclass, 'x.dictnamespace', true),
      ('pg_ts_parser'::regclass, 'x.prsnamespace', true), ('pg_ts_template'::regclass, 'x.tmplnamespace', true), ('pg_statistic_ext'::regclass, 'x.stxnamespace', true),
      ('pg_enum'::regclass, '(SELECT e.typnamespace FROM pg_type e WHERE e.oid = x.enumtypid)', false),
      ('pg_cast'::regclass, '(SELECT $5 FROM pg_type e WHERE e.oid IN (x.castsource, x.casttarget) AND e.typnamespace = $5 LIMIT 1)', true),
      ('pg_type'::regclass, 'x.typnamespace', true), ('pg_class'::regclass, 'x.relnamespace', true)
    ) t (catalog, place, oid)
    WHERE every OR t.catalog NOT IN ('pg_type'::regclass, 'pg_class'::regclass)
      AND (NOT counts OR pg_stat_get_xact_tuples_inserted(t.catalog) + pg_stat_get_xact_tuples_updated(t.catalog)
        + pg_stat_get_xact_tuples_deleted(t.catalog) > 0)
  LOOP
    RETURN QUERY EXECUTE format(
      'SELECT %L::regclass::oid, %s, coalesce(p.place, 0), NULL::text FROM %s x CROSS JOIN LATERAL (SELECT %s::oid) p (place)'
      ' CROSS JOIN (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint OFFSET 0) s (next)' -- by the snapshot that sees the rows
      ' WHERE %s AND NOT coalesce(p.place, 0) = ANY ($2)%s',
      catalog.catalog, CASE WHEN catalog.oid THEN 'x.oid' ELSE '0::oid' END, catalog.catalog, catalog.place, mine,
      CASE catalog.catalog::text
        WHEN 'pg_namespace' THEN ' AND x.nspname !~ ''^pg_''' -- temporary tables
        WHEN 'pg_class' THEN ' AND x.relkind NOT IN (''i'', ''t'') AND x.relpersistence <> ''t'' AND NOT x.oid = ANY ($3) AND x.oid <> $4'
        WHEN 'pg_type' THEN ' AND x.typrelid = 0 AND x.typelem = 0'
        ELSE '' END) USING top, skipped, keys, version, home;
  END LOOP;

  -- DDL locks a table to change its parts. An UPDATE of a catalog does not.
  FOR catalog IN
    SELECT t.catalog, t.owner FROM (VALUES ('pg_index'::regclass, 'indrelid'), ('pg_attribute'::regclass, 'attrelid'),
      ('pg_constraint'::regclass, 'conrelid'), ('pg_trigger'::regclass, 'tgrelid')) t (catalog, owner)
    WHERE every AND (NOT counts OR pg_stat_get_xact_tuples_updated(t.catalog) > 0)
  LOOP
    RETURN QUERY EXECUTE format(
      'SELECT DISTINCT ''pg_class''::regclass::oid, k.oid, k.relnamespace, NULL::text FROM %s x JOIN pg_class k ON k.oid = x.%I'
      ' CROSS JOIN (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint OFFSET 0) s (next)'
      ' WHERE %s AND k.relpersistence <> ''t'' AND NOT k.relnamespace = ANY ($2) AND NOT k.oid = ANY ($3) AND k.oid <> $4',
      catalog.catalog, catalog.owner, mine) USING top, skipped, keys, version;
  END LOOP;
END
$kiloshard$;

-- keep_inside fails, and names up to three objects, if this transaction changed anything outside the shard's schema. A null
-- schema is for a file that runs once a host: it may change the shared schemas, and nothing else. Call it with a search_path
-- of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.keep_inside(schema text, every boolean, shared text[]) RETURNS void LANGUAGE plpgsql AS $kiloshard$
#variable_conflict use_variable
DECLARE
  strays text;
  place  text; -- the schema of the first one
BEGIN
  WITH changed AS (
    SELECT DISTINCT coalesce(n.nspname, '') AS place,
      CASE WHEN c.class = 'pg_extension'::regclass THEN 1 WHEN c.place = 0 THEN 2 WHEN c.class = 'pg_namespace'::regclass THEN 3 WHEN k.relkind IN ('i', 't') THEN 9 ELSE 4 END AS rank,
      CASE
        WHEN c.class = 'pg_db_role_setting'::regclass THEN 'settings of a role or a database'
        WHEN c.class = 'pg_class'::regclass AND k.relname IN ('pg_authid', 'pg_auth_members') THEN 'roles'
        WHEN c.class = 'pg_enum'::regclass THEN 'an enum in schema ' || n.nspname
        ELSE coalesce(pg_describe_object(c.class, c.object, 0), c.name, 'a dropped object') END AS name
    FROM kiloshard.changed_objects(schema, every) c
    LEFT JOIN pg_namespace n ON n.oid = c.place
    LEFT JOIN pg_class k ON c.class = 'pg_class'::regclass AND k.oid = c.object
    WHERE CASE WHEN schema IS NULL THEN NOT coalesce(n.nspname, '') = ANY (shared) ELSE c.place <> to_regnamespace(schema) END
  ), outside AS (
    SELECT c.*, row_number() OVER (ORDER BY c.rank, c.name) AS turn FROM changed c
  )
  SELECT string_agg(o.name, ', ' ORDER BY o.turn) FILTER (WHERE o.turn <= 3), min(o.place) FILTER (WHERE o.turn = 1)
  INTO strays, place FROM outside o;
  IF strays IS NOT NULL THEN
    RAISE EXCEPTION '%', strays USING ERRCODE = '{{.LeftShard}}', SCHEMA = place;
  END IF;
END
$kiloshard$;
{{end}}
