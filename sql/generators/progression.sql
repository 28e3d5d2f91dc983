-- next_{{.Name}}_id() makes {{.Start}}, {{.Start}} + {{.Step}}, {{.Start}} + 2 * {{.Step}} and so on.
--
-- No clock moves this sequence on, so a crash must not lose the values that it returned. Postgres logs
-- a sequence 32 values ahead, and only the session that wrote that record waits until it is on disk.
-- A transaction that writes nothing itself does not wait, and its values may come again after a
-- crash. One that inserts a row does wait; and if the row is lost, so is its number.
CREATE SEQUENCE IF NOT EXISTS {{.Schema}}.next_{{.Name}}_id_seq AS bigint INCREMENT BY {{.Step}} MINVALUE {{.Start}} START WITH {{.Start}};

-- For the default of a column.
CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_id() RETURNS bigint LANGUAGE sql AS $kiloshard$
SELECT pg_catalog.nextval('{{.Schema}}.next_{{.Name}}_id_seq'::pg_catalog.regclass) $kiloshard$;

-- For clients, which may use the numbers elsewhere. The logical message is a write, so the commit waits
-- until it and all earlier WAL are on disk, even where synchronous_commit is off.
CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_ids(n int) RETURNS SETOF bigint LANGUAGE plpgsql STRICT AS $kiloshard$
BEGIN
  IF n OPERATOR(pg_catalog.>) 0 THEN
    IF pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN
      PERFORM pg_catalog.set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN QUERY SELECT pg_catalog.nextval('{{.Schema}}.next_{{.Name}}_id_seq'::pg_catalog.regclass)
      FROM pg_catalog.generate_series(1, n);
    PERFORM pg_catalog.pg_logical_emit_message(true, 'kiloshard', 'numbers');
  END IF;
END
$kiloshard$;
