-- The maps of clusters in a control database: one row for each version, never changed. What a version follows is unique,
-- so of two who follow the same version one fails.
DO $kiloshard$
BEGIN
  -- Two who make the same table at once would meet in the catalog.
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('kiloshard.maps', 0));
  IF pg_catalog.to_regclass('kiloshard.maps') IS NOT NULL THEN
    RETURN;
  END IF;
  IF pg_catalog.to_regnamespace('kiloshard') IS NULL THEN -- else it takes no right to create schemas
    CREATE SCHEMA kiloshard;
  END IF;
  CREATE TABLE kiloshard.maps (
    cluster  text NOT NULL,
    version  int NOT NULL CHECK (version > follows),
    follows  int NOT NULL CHECK (follows >= 0), -- the version before; 0 for the first
    document text NOT NULL, -- a config as kiloshard.yaml has it, without passwords
    made_at  timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
    made_by  text NOT NULL, -- as the client says
    role     name NOT NULL DEFAULT session_user,
    why      text NOT NULL,
    attempt  text NOT NULL, -- by chance: who lost the answer to a change knows it by this again
    PRIMARY KEY (cluster, version),
    UNIQUE (cluster, follows)
  );
  CREATE OR REPLACE FUNCTION kiloshard.keep_maps() RETURNS trigger LANGUAGE plpgsql AS $function$
  BEGIN
    RAISE EXCEPTION 'kiloshard.maps is only added to: it is the history of the map'
      USING HINT = 'A map is put back by making it the next version.';
  END
  $function$;
  CREATE TRIGGER keep_maps BEFORE UPDATE OR DELETE OR TRUNCATE ON kiloshard.maps
    FOR EACH STATEMENT EXECUTE FUNCTION kiloshard.keep_maps();
END
$kiloshard$;
