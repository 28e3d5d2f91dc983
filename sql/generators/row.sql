-- next_{{.Name}}_id() makes one number after the other, without a gap: it adds one to a row, whose lock it holds
-- until the transaction ends. A transaction that rolls back returns its numbers. The price:
-- transactions that use the same counter run one after the other, including their commits. Under
-- REPEATABLE READ and SERIALIZABLE one that had to wait fails with a serialization failure and must be retried.
--
-- The functions run with their owner's rights, so that no other role needs the right to change the row.
-- Use GRANT EXECUTE to let a role draw numbers.
CREATE TABLE IF NOT EXISTS {{.Schema}}.counters (
  name  text PRIMARY KEY,
  value bigint NOT NULL -- the last one returned
) WITH (fillfactor = 10); -- so that the row's next version finds room beside it

INSERT INTO {{.Schema}}.counters (name, value) VALUES ('{{.Name}}', {{.Before}}) ON CONFLICT (name) DO NOTHING;

CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_id() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  v bigint;
BEGIN
  UPDATE {{.Schema}}.counters SET value = value + 1 WHERE name = '{{.Name}}' RETURNING value INTO STRICT v;
  RETURN v;
END
$kiloshard$;

-- A thousand calls of next_{{.Name}}_id() in one transaction leave a thousand dead versions of the row, and
-- each call has to pass all of them. This makes n numbers with one version.
CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_ids(n int) RETURNS SETOF bigint
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  v bigint;
BEGIN
  IF n > 0 THEN
    UPDATE {{.Schema}}.counters SET value = value + n WHERE name = '{{.Name}}' RETURNING value INTO STRICT v;
    RETURN QUERY SELECT generate_series(v - n + 1, v);
  END IF;
END
$kiloshard$;

REVOKE EXECUTE ON FUNCTION {{.Schema}}.next_{{.Name}}_id(), {{.Schema}}.next_{{.Name}}_ids(int) FROM PUBLIC;
