-- The ledger of moves, on the source and the target of each move, and the functions that refuse statements on a shard's old
-- host. The row on the source decides: the transaction that fences the shard also records the fence. The row on the target
-- says which move an unfinished shard belongs to.
{{template "helper schema" .}}
{{template "one at a time" .}}
CREATE TABLE IF NOT EXISTS kiloshard.moves (
  id      text PRIMARY KEY, -- 8 hexadecimal digits, part of the name of each object that the move makes
  shard   int NOT NULL,
  schema  name NOT NULL,
  side    text NOT NULL, -- source or target: which of the two this host is
  source  text NOT NULL, -- name of a host in the map
  target  text NOT NULL,
  step    text NOT NULL, -- written before the step begins
  outcome text, -- null while under way; moved, aborted, returned or cleaned
  who     text NOT NULL,
  began   timestamp with time zone NOT NULL,
  stepped timestamp with time zone NOT NULL, -- when the step began
  fenced  timestamp with time zone, -- when the source began to refuse statements
  sequences jsonb, -- what each sequence was before the fence, which holds it at its end
  grants  aclitem[], -- the grants of the schema before the fence, which revokes them
  offline boolean, -- the shard is locked while it is copied
  carried text, -- the target's snapshot when all rows were there: later changes come from its own writers
  identities jsonb, -- the original replica identity in pg_class, of tables that have another one while they move
  error   text, -- of the last attempt
  mover   int, -- on the source, the server process of the session that works on the move
  back    jsonb, -- on the source, the way back of a move that can be rolled back
  returns text, -- the move that this one rolls back
  split   text, -- what the moves of one promotion of a standby have in common
  copied  timestamp with time zone, -- on the target, when all rows had been copied, but for what was written meanwhile
  opened  timestamp with time zone, -- on the target, when the shard began to take writes there
  large_objects oid[], -- on the target, those that this move has made there
  catalogs text, -- on the source, a hash of what the catalogs say of the schema behind the fence
  parts   oid[], -- on the source, what was in that schema
  keys    text -- on the target, statements that make the keys and indexes which the shard gets once it has its rows; null when it has them
);
ALTER TABLE kiloshard.moves ADD COLUMN IF NOT EXISTS grants aclitem[]; -- for a table that was made without it
CREATE UNIQUE INDEX IF NOT EXISTS moves_shard ON kiloshard.moves (shard) WHERE outcome IS NULL;
GRANT SELECT ON kiloshard.moves TO PUBLIC; -- it says where a shard went

-- The mover writes a marker on the source and waits for it on the target: all earlier commits are there then.
CREATE TABLE IF NOT EXISTS kiloshard.move_markers (
  move    text NOT NULL,
  attempt bigint NOT NULL,
  PRIMARY KEY (move, attempt)
);

-- raise_moved raises an error that names the shard's new host. It is volatile, so that also a statement which has waited for a move reads
-- what that has written.
CREATE OR REPLACE FUNCTION kiloshard.raise_moved(number int) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  m record;
BEGIN
  SELECT target, fenced INTO m FROM kiloshard.moves WHERE shard = number AND side = 'source' AND fenced IS NOT NULL ORDER BY fenced DESC LIMIT 1;
  RAISE EXCEPTION 'shard % moved to %', number, coalesce(m.target || ' at ' || m.fenced, 'another host') USING ERRCODE = '{{.ShardGone}}',
    HINT = 'The newest map says where it is: kiloshard route, or kiloshard psql.';
END
$kiloshard$;

-- shard_has_moved does so for the views that replace the shard's tables. It is declared immutable so that Postgres calls it when it
-- plans a statement, before any row is sent.
CREATE OR REPLACE FUNCTION kiloshard.shard_has_moved(number int) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
BEGIN
  PERFORM kiloshard.raise_moved(number);
  RETURN NULL;
END
$kiloshard$;

-- refuse_moved does so as the trigger of these views: Postgres says of a view without one that it takes no rows. Its argument is the shard's number.
CREATE OR REPLACE FUNCTION kiloshard.refuse_moved() RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
BEGIN
  PERFORM kiloshard.raise_moved(TG_ARGV[0]::int);
  RETURN NULL;
END
$kiloshard$;

-- refuse_arriving refuses writes to the tables of a shard on its new host until the old one refuses them. The workers of
-- subscriptions and the mover write as replicas, for which it does not fire. Its argument is the ID of the move.
CREATE OR REPLACE FUNCTION kiloshard.refuse_arriving() RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  m record;
BEGIN
  SELECT shard, source, opened, outcome INTO m FROM kiloshard.moves WHERE id = TG_ARGV[0] AND side = 'target';
  IF m.opened IS NULL AND m.outcome IS NULL AND m.shard IS NOT NULL THEN
    RAISE EXCEPTION 'shard % is moving here, and is still on %', m.shard, m.source USING ERRCODE = '{{.ShardGone}}',
      HINT = 'The newest map says where it is: kiloshard route, or kiloshard psql.';
  END IF;
  RETURN NULL;
END
$kiloshard$;

-- fence makes the source of a move refuse the shard: its sequences are at their end, so that nextval fails also for sessions that know their OIDs, its schema
-- gets another name, which only its owner may use, the fence that was made before takes its place, and the ledger says so. The caller's transaction
-- holds the locks of all tables and sequences. ALTER SEQUENCE gives a sequence a new file, so that a rollback undoes the setval as well.
CREATE OR REPLACE FUNCTION kiloshard.fence(move text, shard_schema name) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  hidden CONSTANT name := shard_schema || '__moved_' || move;
  place record;
  held jsonb := '[]';
  s record;
  was record;
  last bigint;
  role text;
BEGIN
  SELECT oid, nspowner, nspacl INTO STRICT place FROM pg_namespace WHERE nspname = shard_schema;
  FOR s IN
    SELECT c.relname AS name, c.oid::regclass AS path, q.* FROM pg_depend d JOIN pg_class c ON c.oid = d.objid JOIN pg_sequence q ON q.seqrelid = c.oid
    WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_namespace'::regclass AND d.refobjid = place.oid ORDER BY c.relname
  LOOP
    EXECUTE format('SELECT last_value, is_called FROM %s', s.path) INTO was;
    held := held || jsonb_build_object('name', s.name, 'increment', s.seqincrement, 'max', s.seqmax, 'cycle', s.seqcycle, 'last', was.last_value, 'called', was.is_called);
    last := greatest(was.last_value, s.seqstart, s.seqmin + 1);
    EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s INCREMENT 1 NO CYCLE', s.path, last);
    PERFORM setval(s.path, last);
  END LOOP;
  EXECUTE format('ALTER SCHEMA %I RENAME TO %I', shard_schema, hidden);
  FOR role IN
    SELECT DISTINCT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END FROM aclexplode(place.nspacl) WHERE grantee <> place.nspowner
  LOOP
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM %s CASCADE', hidden, role);
  END LOOP;
  EXECUTE format('ALTER SCHEMA %I RENAME TO %I', shard_schema || '__fence_' || move, shard_schema);
  UPDATE kiloshard.moves m SET step = 'fenced', stepped = clock_timestamp(), fenced = clock_timestamp(), sequences = held, grants = place.nspacl, error = NULL,
    parts = (SELECT array_agg(objid) FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass AND refobjid = place.oid)
  WHERE m.id = move AND m.schema = shard_schema AND m.outcome IS NULL AND m.step = 'cutover';
  IF NOT FOUND THEN RAISE 'the ledger has no move % of % at its cutover any more', move, shard_schema; END IF;
END
$kiloshard$;

-- unfence gives the fence and the schema behind it their names back, and restores sequences and grants. The caller writes the ledger.
CREATE OR REPLACE FUNCTION kiloshard.unfence(move text, shard_schema name) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  held jsonb;
  given aclitem[];
  s record;
  g record;
BEGIN
  SELECT m.sequences, m.grants INTO held, given FROM kiloshard.moves m WHERE m.id = move AND m.schema = shard_schema AND m.fenced IS NOT NULL;
  IF NOT FOUND THEN RAISE 'the ledger has no move % that has fenced %', move, shard_schema; END IF;
  EXECUTE format('ALTER SCHEMA %I RENAME TO %I', shard_schema, shard_schema || '__fence_' || move);
  EXECUTE format('ALTER SCHEMA %I RENAME TO %I', shard_schema || '__moved_' || move, shard_schema);
  FOR s IN
    SELECT format('%I.%I', shard_schema, r.name) AS path, r.* FROM jsonb_to_recordset(held) r (name text, increment bigint, max bigint, cycle bool, last bigint, called bool)
  LOOP
    EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s INCREMENT %s %s', s.path, s.max, s.increment, CASE WHEN s.cycle THEN 'CYCLE' ELSE 'NO CYCLE' END);
    PERFORM setval(s.path, s.last, s.called);
  END LOOP;
  FOR g IN
    SELECT a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(r.rolname) END AS role, a.is_grantable
    FROM pg_namespace n CROSS JOIN aclexplode(given) a LEFT JOIN pg_roles r ON r.oid = a.grantee
    WHERE n.nspname = shard_schema AND a.grantee <> n.nspowner AND (a.grantee = 0 OR r.oid IS NOT NULL)
  LOOP
    EXECUTE format('GRANT %s ON SCHEMA %I TO %s%s', g.privilege_type, shard_schema, g.role, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' END);
  END LOOP;
END
$kiloshard$;
REVOKE ALL ON FUNCTION kiloshard.fence(text, name), kiloshard.unfence(text, name) FROM PUBLIC; -- the mover's
