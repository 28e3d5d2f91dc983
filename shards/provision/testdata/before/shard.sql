-- Shard {{.Number}}: a schema, its sequence, and thin functions that call the engine. They are in SQL, of
-- one expression, so that Postgres puts that expression in their place when it plans a statement: a
-- call of next_id() then costs what the engine costs, and a session that has called thousands of
-- them has not compiled one.
CREATE SCHEMA IF NOT EXISTS {{.Schema}};
CREATE SEQUENCE IF NOT EXISTS {{.Schema}}.next_id_seq AS bigint MAXVALUE 1125899906842623;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id() RETURNS bigint LANGUAGE sql AS $kiloshard$
SELECT kiloshard.next_id({{.Number}}, '{{.Schema}}.next_id_seq'::pg_catalog.regclass) $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id(seq pg_catalog.regclass) RETURNS bigint LANGUAGE sql AS $kiloshard$
SELECT kiloshard.next_id({{.Number}}, seq) $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_ids(n int) RETURNS SETOF bigint LANGUAGE sql AS $kiloshard$
SELECT kiloshard.next_ids({{.Number}}, '{{.Schema}}.next_id_seq'::pg_catalog.regclass, n) $kiloshard$;
