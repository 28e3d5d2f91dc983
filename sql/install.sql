-- The kiloshard helper schema: one engine that makes the IDs of all shards of this database. This part
-- checks the database and stores the settings. Then comes engine.sql, or local.sql for a layout without a time,
-- then parts.sql, which takes IDs apart, and audit.sql.
--
-- Everything is schema-qualified, operators too, so that no search_path can substitute a function or
-- an operator of another role. OPERATOR(pg_catalog.+) is just +, but all operators written so have the same
-- precedence, hence the parentheses.

{{if .TimeBits}}
-- The schema of the tables that setters lock. Only its owner may use it; its owner is checked below.
DO $kiloshard$
BEGIN
  IF pg_catalog.to_regnamespace('kiloshard_locks') IS NULL THEN
    CREATE SCHEMA kiloshard_locks;
  END IF;
EXCEPTION WHEN duplicate_schema OR unique_violation THEN NULL; -- another session created it first
END
$kiloshard$;
{{end}}
{{- template "helper schema" .}}
{{template "one at a time" .}}

-- Refuses changes that would give existing IDs another meaning.
DO $kiloshard$
DECLARE
  here   record;
  shards bigint;
BEGIN
{{- if .TimeBits}}
  IF pg_catalog.clock_timestamp() < {{literal .EpochText}}::timestamp with time zone
    OR pg_catalog.clock_timestamp() >= {{literal .EndText}}::timestamp with time zone THEN
    RAISE EXCEPTION 'the clock of this host says %, IDs can be made from % until %',
      pg_catalog.clock_timestamp(), {{literal .EpochText}}, {{literal .EndText}}
      USING ERRCODE = '{{.Refused}}';
  END IF;
{{- end}}
  IF pg_catalog.to_regclass('kiloshard.settings') IS NULL THEN
    RETURN;
  END IF;
  SELECT * INTO here FROM kiloshard.settings;
  IF here IS NULL
    OR (here.cluster, here.schema_prefix, here.epoch, here.time_bits, here.shard_bits, here.type_bits, here.sequence_bits)
     = ({{literal .Cluster}}, {{literal .SchemaPrefix}}, {{literal .EpochText}}::timestamp with time zone,
        {{.TimeBits}}, {{.ShardBits}}, {{.TypeBits}}, {{.SequenceBits}}) THEN
    RETURN;
  END IF;
  SELECT pg_catalog.count(*) INTO shards FROM pg_catalog.pg_namespace
    WHERE nspname ~ ('^' || here.schema_prefix || '[0-9]{5}(__|$)');
  IF shards > 0 THEN
    RAISE EXCEPTION 'this database holds % shards of cluster "%" with prefix "%", epoch % and layout % (usable bits); the map says cluster "%" with prefix "%", epoch % and layout %',
      shards, here.cluster, here.schema_prefix, here.epoch,
      pg_catalog.format('%s time|%s shard|%s type|%s sequence', here.time_bits, here.shard_bits, here.type_bits, here.sequence_bits),
      {{literal .Cluster}}, {{literal .SchemaPrefix}}, {{literal .EpochText}}::timestamp with time zone,
      '{{.TimeBits}} time|{{.ShardBits}} shard|{{.TypeBits}} type|{{.SequenceBits}} sequence'
      USING ERRCODE = '{{.Refused}}', HINT = 'None of these may change while shards exist.';
  END IF;
  -- Another layout has other functions: drop all of them. The scripts below create the new ones.
  FOR here IN
    SELECT p.oid::pg_catalog.regprocedure AS function FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = pg_catalog.to_regnamespace('kiloshard')
      AND p.proname IN ('next_id', 'next_ids', 'draw_id', 'draw', 'catch_up_to_clock', 'catch_up', 'advance', 'id_of', 'id_time', 'id_shard', 'id_type', 'id_sequence', 'id_floor')
  LOOP
    EXECUTE pg_catalog.format('DROP FUNCTION %s', here.function);
  END LOOP;
END
$kiloshard$;

-- The parameters of the functions below, for reading only: changing the row does not change the functions.
CREATE TABLE IF NOT EXISTS kiloshard.settings (
  one           boolean PRIMARY KEY DEFAULT true CHECK (one),
  cluster       text NOT NULL,
  schema_prefix text NOT NULL,
  epoch         timestamp with time zone NOT NULL,
  time_bits     int NOT NULL, -- without the sign bit, which stays clear; 0 in IDs without a time
  shard_bits    int NOT NULL,
  type_bits     int NOT NULL DEFAULT 0,
  sequence_bits int NOT NULL,
  engine        text NOT NULL -- the version of the installed functions
);

GRANT SELECT ON kiloshard.settings TO PUBLIC; -- a service compares it with its map

INSERT INTO kiloshard.settings (cluster, schema_prefix, epoch, time_bits, shard_bits, type_bits, sequence_bits, engine)
VALUES ({{literal .Cluster}}, {{literal .SchemaPrefix}}, {{literal .EpochText}}, {{.TimeBits}}, {{.ShardBits}}, {{.TypeBits}}, {{.SequenceBits}}, {{literal .Version}})
ON CONFLICT (one) DO UPDATE SET
  cluster = excluded.cluster, schema_prefix = excluded.schema_prefix, epoch = excluded.epoch,
  time_bits = excluded.time_bits, shard_bits = excluded.shard_bits, type_bits = excluded.type_bits,
  sequence_bits = excluded.sequence_bits, engine = excluded.engine;
