-- Shard {{.Number}}: a schema, its sequence, and thin functions that call the engine. They are thin
-- because Postgres keeps every function that a session has called in that session's memory.
CREATE SCHEMA IF NOT EXISTS {{.Schema}};
CREATE SEQUENCE IF NOT EXISTS {{.Schema}}.next_id_seq AS bigint MAXVALUE {{.MaxSequenceValue}};

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id() RETURNS bigint LANGUAGE plpgsql AS $kiloshard$
BEGIN RETURN kiloshard.next_id({{.Number}}, '{{.Schema}}.next_id_seq'); END $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id(seq pg_catalog.regclass) RETURNS bigint LANGUAGE plpgsql STRICT AS $kiloshard$
BEGIN RETURN kiloshard.next_id({{.Number}}, seq); END $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_ids(n int) RETURNS SETOF bigint LANGUAGE plpgsql STRICT AS $kiloshard$
BEGIN RETURN QUERY SELECT kiloshard.next_ids({{.Number}}, '{{.Schema}}.next_id_seq', n); END $kiloshard$;
