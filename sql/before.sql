-- Functions of earlier releases' engines, if one was installed here. A statement planned before the upgrade may still call
-- them, and Postgres does not lock functions against being dropped. So they stay for one release with new bodies: they
-- draw a fresh value by draw() and no longer move a sequence themselves.
DO $kiloshard$
BEGIN
  IF pg_catalog.to_regprocedure('kiloshard.catch_up(int, regclass, bigint, int, boolean)') IS NOT NULL THEN
    CREATE OR REPLACE FUNCTION kiloshard.catch_up(shard int, seq pg_catalog.regclass, seen bigint, wanted int, in_line boolean) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $body$
BEGIN RETURN kiloshard.draw(shard, seq, wanted); END $body$;
  END IF;
  IF pg_catalog.to_regprocedure('kiloshard.catch_up(int, regclass, bigint, int)') IS NOT NULL THEN
    CREATE OR REPLACE FUNCTION kiloshard.id_of(shard int, seq pg_catalog.regclass{{if .TypeBits}}, type int{{end}}, v bigint, at double precision) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $body$
BEGIN RETURN kiloshard.draw_id(shard, seq{{if .TypeBits}}, type{{end}}); END $body$;
    CREATE OR REPLACE FUNCTION kiloshard.catch_up(shard int, seq pg_catalog.regclass, drawn bigint, wanted int) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $body$
BEGIN RETURN kiloshard.draw(shard, seq, wanted); END $body$;
  END IF;
END
$kiloshard$;
