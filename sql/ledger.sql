-- The ledger of migrations: which file ran where and when, who ran it, how long it took, and how it failed.
-- Tern's version tables hold each shard's version.
{{template "helper schema" .}}
{{template "one at a time" .}}
CREATE TABLE IF NOT EXISTS kiloshard.ledger (
  entry     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run       text NOT NULL, -- name of the run of kiloshard
  who       text NOT NULL, -- who ran it, as the client says
  role      name NOT NULL DEFAULT session_user,
  shard     int NOT NULL,
  version   int NOT NULL, -- of the file
  file      text NOT NULL,
  direction text NOT NULL CHECK (direction IN ('up', 'down', 'force', 'accept', 'shared')), -- shared: of the host, with shard -1
  checksum  text NOT NULL, -- SHA-256 of the file, in hexadecimal
  began     timestamp with time zone NOT NULL,
  took      interval NOT NULL,
  current   boolean NOT NULL, -- the shard's version includes this file; of a statement: the next run continues after it
  sqlstate  text, -- of a failure, which was rolled back
  error     text,
  statement int -- 1-based, in a file that runs outside a transaction; null for the whole file
);
ALTER TABLE kiloshard.ledger DROP CONSTRAINT IF EXISTS ledger_direction_check; -- of an older version
ALTER TABLE kiloshard.ledger ADD CONSTRAINT ledger_direction_check CHECK (direction IN ('up', 'down', 'force', 'accept', 'shared')) NOT VALID;
CREATE INDEX IF NOT EXISTS ledger_current ON kiloshard.ledger (shard, version) WHERE current;
CREATE INDEX IF NOT EXISTS ledger_run ON kiloshard.ledger (run, shard);
CREATE UNIQUE INDEX IF NOT EXISTS ledger_shared ON kiloshard.ledger (version) WHERE current AND direction = 'shared';
CREATE INDEX IF NOT EXISTS ledger_statement ON kiloshard.ledger (shard) WHERE current AND statement IS NOT NULL;

-- record_migration records one file in one shard, in the transaction that runs the file. The first file of a message
-- began when the message reached the server; each later one when the file before it was done; a file that runs
-- statement by statement when its first statement began. The entries of statements are no longer current then.
-- Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.record_migration(
  run text, who text, shard int, version int, file text, direction text, checksum text, sqlstate text, error text, first boolean
) RETURNS void LANGUAGE plpgsql AS $kiloshard$
#variable_conflict use_variable
DECLARE
  began  timestamp with time zone := statement_timestamp();
  before CONSTANT text := current_setting('lock_timeout');
BEGIN
  IF before = '0' THEN
    PERFORM set_config('lock_timeout', '30s', true); -- somebody else may have locked the ledger
  END IF;
  IF NOT first THEN
    began := greatest(began, (SELECT max(l.began + l.took) FROM kiloshard.ledger l WHERE l.run = run AND l.shard = shard));
  END IF;
  -- Usually no entry has to change, which one look at an index shows.
  IF error IS NULL AND EXISTS (
    SELECT FROM kiloshard.ledger l WHERE l.shard = shard AND l.current AND (l.version >= version OR l.statement IS NOT NULL)
  ) THEN
    WITH statements AS (
      UPDATE kiloshard.ledger l SET current = false WHERE l.shard = shard AND l.current AND l.statement IS NOT NULL
      RETURNING l.run, l.began
    ) SELECT coalesce(min(s.began), began) INTO began FROM statements s WHERE s.run = run;
    IF direction = 'force' THEN
      UPDATE kiloshard.ledger l SET current = false WHERE l.shard = shard AND l.version > version AND l.current;
    ELSE
      UPDATE kiloshard.ledger l SET current = false WHERE l.shard = shard AND l.version = version AND l.current;
    END IF;
  END IF;
  INSERT INTO kiloshard.ledger (run, who, shard, version, file, direction, checksum, began, took, current, sqlstate, error)
    VALUES (run, who, shard, version, file, direction, checksum, began, clock_timestamp() - began,
      error IS NULL AND direction = 'up', sqlstate, error);
  IF before = '0' THEN
    PERFORM set_config('lock_timeout', before, true);
  END IF;
END
$kiloshard$;

-- record_statement records that one statement of a file that runs outside a transaction is done. The checksum is
-- that of the SQL as rendered for the shard. began is when the statement began, in seconds since the Unix epoch by this
-- server's clock. It returns the present time, when the next statement begins. Statements of another file, or of
-- the same file with another checksum, are no longer current then.
CREATE OR REPLACE FUNCTION kiloshard.record_statement(
  run text, who text, shard int, version int, file text, direction text, checksum text, statement int, began double precision
) RETURNS double precision LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $kiloshard$
#variable_conflict use_variable
BEGIN
  UPDATE kiloshard.ledger l SET current = false
    WHERE l.shard = shard AND l.current AND l.statement IS NOT NULL
      AND (l.version, l.direction, l.checksum) <> (version, direction, checksum);
  INSERT INTO kiloshard.ledger (run, who, shard, version, file, direction, checksum, began, took, current, statement)
    VALUES (run, who, shard, version, file, direction, checksum, to_timestamp(began),
      clock_timestamp() - to_timestamp(began), true, statement);
  RETURN extract(epoch FROM clock_timestamp());
END
$kiloshard$;

-- make_version_table creates tern's version table as tern does, and locks it. It returns false if another session is
-- creating it, or has locked it. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.make_version_table(schema text) RETURNS boolean LANGUAGE plpgsql AS $kiloshard$
DECLARE
  before  CONSTANT text := pg_catalog.current_setting('lock_timeout');
  ignored text;
  writer  pg_catalog.regrole;
BEGIN
  ignored := pg_catalog.set_config('lock_timeout', '100ms', true); -- another session may have created it and not committed yet
  EXECUTE pg_catalog.format('create table if not exists %I.schema_version(version int4 not null primary key)', schema);
  EXECUTE pg_catalog.format('lock table %I.schema_version in share update exclusive mode nowait', schema);
  EXECUTE pg_catalog.format('insert into %1$I.schema_version(version) select 0 where 0 = (select count(*) from %1$I.schema_version)', schema);
  FOR writer IN SELECT DISTINCT a.grantee::pg_catalog.regrole FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
    WHERE c.oid = pg_catalog.to_regclass(pg_catalog.format('%I.schema_version', schema)) AND a.privilege_type = 'INSERT' AND a.grantee NOT IN (0, c.relowner) LOOP
    EXECUTE pg_catalog.format('revoke insert, update, delete on %I.schema_version from %s', schema, writer); -- by default privileges
  END LOOP;
  ignored := pg_catalog.set_config('lock_timeout', before, true);
  RETURN true;
EXCEPTION WHEN lock_not_available OR unique_violation OR duplicate_table THEN
  RETURN false;
END
$kiloshard$;

{{template "inside" .}}
-- begin_migration runs before a file, in the file's transaction. It takes the shard's lock, creates tern's version table
-- if it is missing, checks that the shard is at the version before the file's by updating the row, which marks it as this
-- transaction's, and sets the file's timeouts and search_path. A function saves parsing all that for each shard. It
-- does not wait for the shard's lock, and for others up to lock_timeout, or 30 s. The file's commit does not wait for the
-- disk. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.begin_migration(
  class int, shard int, schema text, version int, path text, lock_timeout text, statement_timeout text, fresh boolean
) RETURNS void LANGUAGE plpgsql AS $kiloshard$
#variable_conflict use_variable
DECLARE
  before  CONSTANT text := pg_catalog.current_setting('lock_timeout');
  found   int;
  ignored text;
  got     boolean;
BEGIN
  ignored := pg_catalog.set_config('lock_timeout', CASE WHEN lock_timeout <> '' THEN lock_timeout WHEN before = '0' THEN '30s' ELSE before END, true);
{{template "try shard" .Turn}}
  IF got AND fresh THEN
    got := kiloshard.make_version_table(schema);
  END IF;
  IF NOT got THEN
    RAISE EXCEPTION 'another process is migrating %', schema USING ERRCODE = '{{.ShardBusy}}';
  END IF;
  IF pg_catalog.to_regclass('kiloshard.moves') IS NOT NULL THEN -- a mover that was killed holds no lock
    EXECUTE 'SELECT 1 FROM kiloshard.moves WHERE shard = $1 AND outcome IS NULL AND side = ''source''' INTO found USING shard;
    IF found IS NOT NULL THEN
      RAISE EXCEPTION '% is being moved to another host', schema USING ERRCODE = '{{.ShardMoving}}', HINT = 'See kiloshard move status.';
    END IF;
  END IF;
  ignored := pg_catalog.set_config('synchronous_commit', 'off', true);
  EXECUTE pg_catalog.format('update %I.schema_version set version = version returning version', schema) INTO STRICT found;
  IF found <> version THEN
    RAISE EXCEPTION '% is at version %, not %', schema, found, version USING ERRCODE = '{{.ShardMoved}}';
  END IF;
  IF lock_timeout = '' THEN
    ignored := pg_catalog.set_config('lock_timeout', before, true);
  END IF;
  IF statement_timeout <> '' THEN
    ignored := pg_catalog.set_config('statement_timeout', statement_timeout, true);
  END IF;
  PERFORM kiloshard.watch_locks();
  ignored := pg_catalog.set_config('search_path', path, true);
END
$kiloshard$;

-- end_migration runs after a file, in the file's transaction. It sets the version and records the file in the ledger.
-- It returns false, and changes nothing, if this transaction has not marked the version's row: then the file has ended
-- the transaction of begin_migration. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.end_migration(
  schema text, after int, run text, who text, shard int, version int, file text, direction text, checksum text, first boolean
) RETURNS boolean LANGUAGE plpgsql AS $kiloshard$
#variable_conflict use_variable
DECLARE
  found   int;
  ignored text;
BEGIN
  EXECUTE pg_catalog.format('update %I.schema_version set version = %s'
    ' where xmin = pg_catalog.pg_current_xact_id()::pg_catalog.xid returning version', schema, after) INTO found;
  IF found IS NULL THEN
    RETURN false;
  END IF;
  ignored := kiloshard.record_migration(run, who, shard, version, file, direction, checksum, null, null, first);
  RETURN true;
END
$kiloshard$;

-- begin_shared runs before a file that runs once a host, in the file's transaction. It records the file in the ledger, with
-- shard -1; another session that does so waits for this transaction, up to lock_timeout, or 30 s. It fails if the host has
-- run the file. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.begin_shared(
  run text, who text, shard int, version int, file text, direction text, checksum text, path text, lock_timeout text, statement_timeout text
) RETURNS void LANGUAGE plpgsql AS $kiloshard$
#variable_conflict use_variable
DECLARE
  before CONSTANT text := current_setting('lock_timeout');
BEGIN
  PERFORM set_config('lock_timeout', CASE WHEN lock_timeout <> '' THEN lock_timeout WHEN before = '0' THEN '30s' ELSE before END, true);
  INSERT INTO kiloshard.ledger (run, who, shard, version, file, direction, checksum, began, took, current)
    VALUES (run, who, shard, version, file, direction, checksum, clock_timestamp(), '0', true) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'this host has run file % already', file USING ERRCODE = '{{.ShardMoved}}';
  END IF;
  IF lock_timeout = '' THEN
    PERFORM set_config('lock_timeout', before, true);
  END IF;
  IF statement_timeout <> '' THEN
    PERFORM set_config('statement_timeout', statement_timeout, true);
  END IF;
  PERFORM kiloshard.watch_locks();
  PERFORM set_config('search_path', path, true);
END
$kiloshard$;

-- end_shared runs after a file that runs once a host, in the file's transaction. It returns false if the file has ended the
-- transaction of begin_shared. Call it with a search_path of pg_catalog.
CREATE OR REPLACE FUNCTION kiloshard.end_shared(version int) RETURNS boolean LANGUAGE plpgsql AS $kiloshard$
#variable_conflict use_variable
BEGIN
  UPDATE kiloshard.ledger l SET took = clock_timestamp() - l.began
    WHERE l.direction = 'shared' AND l.current AND l.version = version AND l.xmin = pg_current_xact_id()::xid;
  RETURN FOUND;
END
$kiloshard$;

-- need_shared takes the place of a file that runs once a host in each shard. It fails if the host has not run the file.
CREATE OR REPLACE FUNCTION kiloshard.need_shared(version int) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $kiloshard$
#variable_conflict use_variable
BEGIN
  IF NOT EXISTS (SELECT FROM kiloshard.ledger l WHERE l.direction = 'shared' AND l.current AND l.version = version) THEN
    RAISE EXCEPTION 'this host has not run file %, which runs once a host', version;
  END IF;
END
$kiloshard$;
