-- next_{{.Name}}_id() makes UUIDs by {{.Function}}().
CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_id() RETURNS uuid LANGUAGE sql AS $kiloshard$
SELECT {{.Function}}() $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_ids(n int) RETURNS SETOF uuid LANGUAGE sql AS $kiloshard$
SELECT {{.Function}}() FROM pg_catalog.generate_series(1, n) $kiloshard$;
