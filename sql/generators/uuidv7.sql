-- kiloshard.uuidv7() makes a UUID of version 7 (RFC 9562, section 5.7): 48 bits of milliseconds since
-- 1970, 12 bits of the fraction of the millisecond, 62 random bits. Postgres 18 has its own
-- function, which also guarantees that the UUIDs of one session rise; the one for older versions uses
-- the clock as it is.
DO $do$
BEGIN
  IF pg_catalog.current_setting('server_version_num')::int >= 180000 THEN
    CREATE OR REPLACE FUNCTION kiloshard.uuidv7() RETURNS uuid LANGUAGE sql AS $body$ SELECT pg_catalog.uuidv7() $body$;
  ELSE
    CREATE OR REPLACE FUNCTION kiloshard.uuidv7() RETURNS uuid LANGUAGE plpgsql AS $body$
    DECLARE
      -- 4096ths of a millisecond: a double holds them until September 2039, and then all but the last bit.
      t bigint := pg_catalog.floor(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.*) 4096000);
    BEGIN
      -- Time, version and fraction over the first half of a random UUID, whose variant bits stay.
      RETURN pg_catalog.encode(pg_catalog.overlay(
        pg_catalog.uuid_send(pg_catalog.gen_random_uuid()),
        pg_catalog.int8send(((t OPERATOR(pg_catalog.>>) 12) OPERATOR(pg_catalog.<<) 16)
          OPERATOR(pg_catalog.|) (28672 OPERATOR(pg_catalog.|) (t OPERATOR(pg_catalog.&) 4095))),
        1, 8), 'hex')::uuid;
    END
    $body$;
  END IF;
END
$do$;
