-- next_{{.Name}}_id() makes UUIDs by kiloshard.uuidv7().
CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_id() RETURNS uuid LANGUAGE sql AS $kiloshard$
SELECT kiloshard.uuidv7() $kiloshard$;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_ids(n int) RETURNS SETOF uuid LANGUAGE sql AS $kiloshard$
SELECT kiloshard.uuidv7() FROM pg_catalog.generate_series(1, n) $kiloshard$;
