-- Shard {{.Number}} with the function of "Sharding & IDs at Instagram" as published, except for the names and the
-- epoch. It has entry points like Kiloshard's, so that the suite can run on it.
CREATE SCHEMA {{.Schema}};
CREATE SEQUENCE {{.Schema}}.table_id_seq;

CREATE FUNCTION {{.Schema}}.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := {{.EpochMilliseconds}};
    seq_id bigint;
    now_millis bigint;
    shard_id int := {{.Number}};
BEGIN
    SELECT nextval('{{.Schema}}.table_id_seq') % 1024 INTO seq_id;

    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$$ LANGUAGE PLPGSQL;

CREATE FUNCTION {{.Schema}}.next_ids(n int) RETURNS SETOF bigint AS $$
SELECT {{.Schema}}.next_id() FROM generate_series(1, n)
$$ LANGUAGE SQL;
