-- next_{{.Name}}_id() makes {{.Start}}, {{.Start}} + {{.Step}}, {{.Start}} + 2 * {{.Step}} and so on.
--
-- No clock moves this sequence on, so what it has given must not be lost in a crash. Postgres writes
-- a sequence ahead by 32 values, and makes only the session that wrote it wait until that is on disk.
-- A transaction that writes nothing itself does not wait, and the values that it was given may come
-- again after a crash. One that inserts a row does wait; and if the row is lost, so is its number.
CREATE SEQUENCE IF NOT EXISTS {{.Schema}}.next_{{.Name}}_id_seq AS bigint INCREMENT BY {{.Step}} MINVALUE {{.Start}} START WITH {{.Start}};

-- For the default of a column.
CREATE OR REPLACE FUNCTION {{.Schema}}.next_{{.Name}}_id() RETURNS bigint LANGUAGE sql AS $kiloshard$
SELECT pg_catalog.nextval('{{.Schema}}.next_{{.Name}}_id_seq'::pg_catalog.regclass) $kiloshard$;

-- For clients, who carry the numbers elsewhere. The message is something written, so that the commit
-- waits for the disk, with all that was written before it; also where synchronous_commit is off.
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
