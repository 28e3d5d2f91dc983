-- The ledger of moves, on every host that a shard leaves or comes to, and what refuses those who come to the old place.
-- The row on the host that a shard leaves is the truth: the transaction that fences the shard also writes that it did.
-- The row on the target says whose the half-made shard is.
{{template "helper schema" .}}
{{template "one at a time" .}}
CREATE TABLE IF NOT EXISTS kiloshard.moves (
  id      text PRIMARY KEY, -- 8 hexadecimal digits, in the names of all that the move makes
  shard   int NOT NULL,
  schema  name NOT NULL,
  side    text NOT NULL, -- source or target: which of the two this host is
  source  text NOT NULL, -- name of a host in the map
  target  text NOT NULL,
  step    text NOT NULL, -- written before the step is begun
  outcome text, -- null while under way; moved, aborted or cleaned
  who     text NOT NULL,
  began   timestamp with time zone NOT NULL,
  stepped timestamp with time zone NOT NULL, -- when the step was begun
  fenced  timestamp with time zone, -- since when the source refuses
  sequences jsonb, -- the maximum of each sequence before the fence
  offline boolean, -- it is copied while it is locked
  carried text, -- the snapshot of the target when it had all: what has changed since, its writers have changed
  identities jsonb, -- of tables that have another replica identity while they move: what pg_class had
  subscription oid, -- on the target, for the names of the slots of its workers
  error   text, -- of the last attempt
  mover   int -- on the source, the process of whoever works on it
);
ALTER TABLE kiloshard.moves ADD COLUMN IF NOT EXISTS mover int, ADD COLUMN IF NOT EXISTS identities jsonb, ADD COLUMN IF NOT EXISTS carried text, ADD COLUMN IF NOT EXISTS offline boolean; -- of a version without them
CREATE UNIQUE INDEX IF NOT EXISTS moves_shard ON kiloshard.moves (shard) WHERE outcome IS NULL;
GRANT SELECT ON kiloshard.moves TO PUBLIC; -- it says where a shard went

-- A marker is written on the source and waited for on the target: what was committed before it is there then.
CREATE TABLE IF NOT EXISTS kiloshard.move_markers (
  move    text NOT NULL,
  attempt bigint NOT NULL,
  PRIMARY KEY (move, attempt)
);

-- shard_has_moved says where a shard went, as an error. The views that stand in place of its tables call it. It is said to
-- be immutable so that it is called when a statement is planned: before any of the statement's answer is sent.
CREATE OR REPLACE FUNCTION kiloshard.shard_has_moved(number int) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  m record;
BEGIN
  SELECT target, fenced INTO m FROM kiloshard.moves WHERE shard = number AND side = 'source' AND fenced IS NOT NULL ORDER BY fenced DESC LIMIT 1;
  RAISE EXCEPTION 'shard % moved to % at %', number, coalesce(m.target, 'another host'), m.fenced USING ERRCODE = '{{.ShardGone}}',
    HINT = 'The newest map says where it is: kiloshard route, or kiloshard psql.';
END
$kiloshard$;

-- refuse_moved does the same for COPY to these views. Its argument is the shard's number.
CREATE OR REPLACE FUNCTION kiloshard.refuse_moved() RETURNS trigger
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
BEGIN
  PERFORM kiloshard.shard_has_moved(TG_ARGV[0]::int);
  RETURN NULL;
END
$kiloshard$;
