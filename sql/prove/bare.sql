-- Shard {{.Number}} with IDs of a bare sequence, which no clock moves on: values that are lost with the WAL come again.
CREATE SCHEMA {{.Schema}};
CREATE SEQUENCE {{.Schema}}.bare_seq;

CREATE FUNCTION {{.Schema}}.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v bigint := nextval('{{.Schema}}.bare_seq');
BEGIN
    RETURN ((v >> 10) << 23) | ({{.Number}} << 10) | (v & 1023);
END $$;

CREATE FUNCTION {{.Schema}}.next_ids(n int) RETURNS SETOF bigint AS $$
SELECT {{.Schema}}.next_id() FROM generate_series(1, n)
$$ LANGUAGE SQL;
