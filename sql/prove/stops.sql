-- Functions that the engine calls in tests in place of Postgres's own. Tests set its clock. A session stops before each of
-- these calls, and after it read the clock, while a test holds the lock of that point: its key is the session, the point,
-- and how often the session has reached the point in this call.
CREATE SCHEMA stops;

-- The clock's offset in microseconds: from {{if .Still}}a time at which it stands still{{else}}the machine's clock{{end}}. A sequence is not
-- transactional: every session reads the present value, within a statement too.
CREATE SEQUENCE stops.clock MINVALUE -9000000000000000 START 0;
SELECT setval('stops.clock', 0);

{{if .Still -}}
CREATE FUNCTION stops.at(point text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  counter CONSTANT text := 'stops.n_' || point;
  n       int;
  key     int;
BEGIN
  IF current_setting('stops.here', true) = 'yes' THEN
    n := coalesce(nullif(current_setting(counter, true), ''), '0')::int + 1;
    PERFORM set_config(counter, n::text, false);
    key := stops.key(pg_backend_pid(), point || ' ' || n);
    PERFORM pg_advisory_lock_shared({{.Class}}, key), pg_advisory_unlock_shared({{.Class}}, key);
  END IF;
END $$;

CREATE FUNCTION stops.key(pid int, point text) RETURNS int LANGUAGE sql AS $$ SELECT hashtext(pid || ' ' || point) $$;

CREATE FUNCTION stops.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz;
BEGIN
  PERFORM stops.at('clock');
  now := timestamptz '2026-06-01Z' + pg_sequence_last_value('stops.clock') * interval '1 microsecond';
  PERFORM stops.at('clocked');
  RETURN now;
END $$;

CREATE FUNCTION stops.pg_sequence_last_value(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN PERFORM stops.at('last'); RETURN pg_sequence_last_value(seq); END $$;

CREATE FUNCTION stops.nextval(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN PERFORM stops.at('nextval'); RETURN nextval(seq); END $$;

CREATE FUNCTION stops.setval(seq regclass, v bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN PERFORM stops.at('setval'); RETURN setval(seq, v); END $$;

-- The clock stands still, so no sleep brings it closer.
CREATE FUNCTION stops.pg_sleep(seconds double precision) RETURNS void LANGUAGE sql AS $$ SELECT $$;
{{- else -}}
CREATE FUNCTION stops.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$
SELECT pg_catalog.clock_timestamp() + pg_catalog.pg_sequence_last_value('stops.clock') * interval '1 microsecond' $$;
{{- end}}
