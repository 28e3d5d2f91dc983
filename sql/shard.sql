-- Shard {{.Number}}: a schema, its sequence, and thin functions that call the engine. next_id() is one
-- PL/pgSQL expression: Postgres inlines the engine's expression when it plans it, once per session. A function in SQL
-- would be planned again with every statement that makes an ID.
CREATE SCHEMA IF NOT EXISTS {{.Schema}};
CREATE SEQUENCE IF NOT EXISTS {{.Schema}}.next_id_seq AS bigint MAXVALUE {{.MaxSequenceValue}};

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id() RETURNS bigint LANGUAGE plpgsql AS $kiloshard$
BEGIN RETURN kiloshard.next_id({{.Number}}, '{{.Schema}}.next_id_seq'{{if .TypeBits}}, 0{{end}}); END $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id(seq pg_catalog.regclass) RETURNS bigint LANGUAGE plpgsql AS $kiloshard$
BEGIN RETURN kiloshard.next_id({{.Number}}, seq{{if .TypeBits}}, 0{{end}}); END $kiloshard$;
{{- if .TypeBits}}

CREATE OR REPLACE FUNCTION {{.Schema}}.next_id(seq pg_catalog.regclass, type int) RETURNS bigint LANGUAGE plpgsql AS $kiloshard$
BEGIN RETURN kiloshard.next_id({{.Number}}, seq, type); END $kiloshard$;
{{- end}}

CREATE OR REPLACE FUNCTION {{.Schema}}.next_ids(n int) RETURNS SETOF bigint LANGUAGE sql AS $kiloshard$
SELECT kiloshard.next_ids({{.Number}}, '{{.Schema}}.next_id_seq'::pg_catalog.regclass, n) $kiloshard$;
