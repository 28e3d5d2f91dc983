-- The maps of clusters in a control database: one row for each version, never changed. (cluster, follows) is unique, so of
-- two changes to the same version one fails.
{{template "helper schema" .}}
{{template "one at a time" .}}

CREATE TABLE IF NOT EXISTS kiloshard.maps (
  cluster  text NOT NULL,
  version  int NOT NULL CHECK (version > follows),
  follows  int NOT NULL CHECK (follows >= 0), -- the version before; 0 for the first
  document text NOT NULL, -- a config as kiloshard.yaml has it, without passwords
  made_at  timestamp with time zone NOT NULL DEFAULT clock_timestamp(),
  made_by  text NOT NULL, -- as the client says
  role     name NOT NULL DEFAULT session_user, -- as the server says
  why      text NOT NULL,
  attempt  text NOT NULL, -- random: a client that lost the answer to a change recognizes its row by this
  PRIMARY KEY (cluster, version),
  UNIQUE (cluster, follows)
);

CREATE OR REPLACE FUNCTION kiloshard.keep_maps() RETURNS trigger LANGUAGE plpgsql AS $kiloshard$
BEGIN
  RAISE EXCEPTION 'kiloshard.maps is append-only: it is the history of the map'
    USING HINT = 'To restore a map, save it as the next version.';
END
$kiloshard$;

-- note_map sets the time and the role of a new map, so that no role can forge the history, and requires that its version is
-- the latest plus one. The first version may be higher, for a map that comes from another store.
CREATE OR REPLACE FUNCTION kiloshard.note_map() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  latest CONSTANT int := coalesce((SELECT max(version) FROM kiloshard.maps WHERE cluster = NEW.cluster), 0);
BEGIN
  IF NEW.follows <> latest THEN
    RAISE EXCEPTION 'the map of % is at version %, not %', NEW.cluster, latest, NEW.follows USING ERRCODE = 'unique_violation';
  ELSIF NEW.version <> latest + 1 AND (latest > 0 OR NEW.version > 1000000000) THEN
    RAISE EXCEPTION 'version % of the map of % after version %: expected one more', NEW.version, NEW.cluster, latest USING ERRCODE = 'check_violation';
  ELSIF octet_length(NEW.document) > 1048576 OR octet_length(NEW.made_by) > 4096 OR octet_length(NEW.why) > 4096 THEN
    RAISE EXCEPTION 'a map of % bytes: expected at most 1 MiB, and 4096 bytes for who made it and why', octet_length(NEW.document) USING ERRCODE = 'check_violation';
  END IF;
  NEW.made_at := clock_timestamp();
  NEW.role := session_user;
  NEW.made_by := regexp_replace(NEW.made_by, '[[:cntrl:]]', ' ', 'g');
  RETURN NEW;
END
$kiloshard$;

CREATE OR REPLACE TRIGGER keep_maps BEFORE UPDATE OR DELETE OR TRUNCATE ON kiloshard.maps
  FOR EACH STATEMENT EXECUTE FUNCTION kiloshard.keep_maps();
CREATE OR REPLACE TRIGGER note_map BEFORE INSERT ON kiloshard.maps FOR EACH ROW EXECUTE FUNCTION kiloshard.note_map();
