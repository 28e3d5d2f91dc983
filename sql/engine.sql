-- The kiloshard helper schema: one engine that makes the IDs of all shards of this database.
--
-- An ID is, from the high bits down: {{.TimeBits}} bits of milliseconds since {{.EpochText}},
-- {{.ShardBits}} bits of shard, {{.SequenceBits}} bits of slot within the millisecond.
--
-- THE SEQUENCE IS THE CLOCK. Every shard has a sequence whose value is itself
-- (milliseconds since the epoch) * {{.Slots}} + slot. An ID is such a value with the shard's number
-- put between the two. nextval never gives a value twice, so no ID is given twice. What is left to
-- do is to keep the sequence near the clock:
--
--   near the clock     the value is used as it is: no lock, no WAL beyond nextval's own;
--   behind the clock   (the shard was idle) catch_up() moves the sequence to the present;
--   ahead of the clock (more than {{.Slots}} IDs a millisecond, or the clock stepped back) the call
--                      sleeps for a millisecond and then uses its value: never an error, never a
--                      duplicate, and the lead shrinks, since a session then draws one value a
--                      millisecond while the clock gains {{.Slots}} slots.
--
-- WHY NO ID IS GIVEN TWICE. IDs and values of the sequence map one to one, so a duplicate needs the
-- sequence to go backward, and only setval in catch_up() can do that. It does not, because:
--
--   1. Setters exclude each other by an advisory lock on the sequence.
--   2. A setter reads the clock, then the sequence's last value, and goes on only when that value
--      is behind by more than the window plus a margin of two slots for each of max_connections.
--      From then until its setval, every other session draws two values at most: one that it was
--      about to draw in catch_up(), since the sequence was near the clock when it looked, and the
--      next one, which lies behind the clock, so that the session goes to catch_up(), sees that
--      the sequence is behind, and waits for the lock. next_ids(), which draws many values at
--      once, holds the same lock in shared mode meanwhile. All values drawn in the gap thus lie
--      within the margin, far below the value that is set.
--   3. A session that is frozen between nextval and its return holds a value of its own; whenever
--      it wakes, nobody else has that value.
--   4. A crash or an asynchronous failover may lose the newest values with the WAL. They lie in the
--      past by the time the server is back, and catch_up() moves the sequence beyond them.
--
-- WHAT THIS LEAVES OPEN.
--
--   a. A clock that steps back while a setter is frozen between its second reading of the clock and
--      its setval, which are neighbouring expressions, for so long that the other sessions, now
--      within the window of the stepped clock, draw all values up to the one it sets: at least the
--      window and the margin, which is {{.WindowBehind}} ms of full load and more.
--   b. Losing WAL and stepping the clock back to before the crash, both at once.
--   c. A nextval or setval on a shard's sequence other than through these functions, a sequence
--      with a CACHE, or a backup restored while the shard lives on elsewhere.
--   d. next_id(seq) with the sequence of another shard. catch_up() refuses it, but it is not called
--      as long as that other shard keeps its sequence near the clock.
--
-- A clock that leaps ahead and back again leaves the sequence ahead: IDs are then as far ahead of
-- the clock as it leapt, and a session makes one a millisecond until the clock has caught up.
--
-- Everything is schema-qualified, operators too, so that no search_path can slip in a function or
-- an operator of somebody else's. OPERATOR(pg_catalog.+) is just +, but it has one precedence with
-- all the others, hence the parentheses.

-- Waits for an installation under way, and keeps out others until this transaction ends.
SELECT pg_catalog.pg_advisory_xact_lock({{.LockClass}}, 0);

-- Refuses what would change the meaning of IDs that exist.
DO $kiloshard$
DECLARE
  here   record;
  shards bigint;
BEGIN
  IF pg_catalog.clock_timestamp() < {{literal .EpochText}}::timestamp with time zone
    OR pg_catalog.clock_timestamp() >= {{literal .EndText}}::timestamp with time zone THEN
    RAISE EXCEPTION 'the clock of this host says %, IDs can be made from % until %',
      pg_catalog.clock_timestamp(), {{literal .EpochText}}, {{literal .EndText}}
      USING ERRCODE = '{{.Refused}}';
  END IF;
  IF pg_catalog.to_regclass('kiloshard.settings') IS NULL THEN
    RETURN;
  END IF;
  SELECT * INTO here FROM kiloshard.settings;
  IF here IS NULL
    OR (here.cluster, here.schema_prefix, here.epoch, here.time_bits, here.shard_bits, here.sequence_bits)
     = ({{literal .Cluster}}, {{literal .SchemaPrefix}}, {{literal .EpochText}}::timestamp with time zone,
        {{.TimeBits}}, {{.ShardBits}}, {{.SequenceBits}}) THEN
    RETURN;
  END IF;
  SELECT pg_catalog.count(*) INTO shards FROM pg_catalog.pg_namespace
    WHERE nspname ~ ('^' || here.schema_prefix || '[0-9]{5}(__|$)');
  IF shards > 0 THEN
    RAISE EXCEPTION 'this database holds % shards of cluster "%" with prefix "%", epoch % and layout %|%|% (usable bits); the map says cluster "%" with prefix "%", epoch % and layout %|%|%',
      shards, here.cluster, here.schema_prefix, here.epoch, here.time_bits, here.shard_bits, here.sequence_bits,
      {{literal .Cluster}}, {{literal .SchemaPrefix}}, {{literal .EpochText}}::timestamp with time zone,
      {{.TimeBits}}, {{.ShardBits}}, {{.SequenceBits}}
      USING ERRCODE = '{{.Refused}}', HINT = 'None of these may change while shards exist.';
  END IF;
END
$kiloshard$;

CREATE SCHEMA IF NOT EXISTS kiloshard;

-- What the functions below were rendered with. Changing a row here changes nothing else.
CREATE TABLE IF NOT EXISTS kiloshard.settings (
  one           boolean PRIMARY KEY DEFAULT true CHECK (one),
  cluster       text NOT NULL,
  schema_prefix text NOT NULL,
  epoch         timestamp with time zone NOT NULL,
  time_bits     int NOT NULL, -- usable ones: the sign bit stays clear
  shard_bits    int NOT NULL,
  sequence_bits int NOT NULL,
  engine        text NOT NULL -- which version of these functions is installed
);

INSERT INTO kiloshard.settings (cluster, schema_prefix, epoch, time_bits, shard_bits, sequence_bits, engine)
VALUES ({{literal .Cluster}}, {{literal .SchemaPrefix}}, {{literal .EpochText}}, {{.TimeBits}}, {{.ShardBits}}, {{.SequenceBits}}, {{literal .Version}})
ON CONFLICT (one) DO UPDATE SET
  cluster = excluded.cluster, schema_prefix = excluded.schema_prefix, epoch = excluded.epoch,
  time_bits = excluded.time_bits, shard_bits = excluded.shard_bits, sequence_bits = excluded.sequence_bits,
  engine = excluded.engine;

-- next_id draws an ID for a shard from one of its sequences. It needs USAGE on the sequence.
--
-- The clock is read by date_part, a double, which is exact enough and costs a tenth of EXTRACT.
CREATE OR REPLACE FUNCTION kiloshard.next_id(shard int, seq pg_catalog.regclass) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT AS $kiloshard$
DECLARE
  v bigint := pg_catalog.nextval(seq);
BEGIN
  -- Unless v lies from {{.WindowBehind}} ms behind the clock to {{.WindowAhead}} ms ahead of it: abs(v - middle) > half the window.
  IF pg_catalog.abs(v OPERATOR(pg_catalog.-)
    ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) {{.MiddleSeconds}}) OPERATOR(pg_catalog.*) {{.SlotsPerSecond}}.0))
    OPERATOR(pg_catalog.>) {{.HalfWindow}}.0 THEN
    IF v OPERATOR(pg_catalog.<)
      ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) {{.EpochSeconds}}) OPERATOR(pg_catalog.*) {{.SlotsPerSecond}}.0) THEN
      v := kiloshard.catch_up(shard, seq, v);
    ELSE
      PERFORM pg_catalog.pg_sleep(0.001);
    END IF;
  END IF;
  -- (v >> slots) << (shard + slots) | shard << slots | v & (2^slots - 1)
  RETURN ((v OPERATOR(pg_catalog.>>) {{.SequenceBits}}) OPERATOR(pg_catalog.<<) {{.LowBits}})
    OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.<<) {{.SequenceBits}})
    OPERATOR(pg_catalog.|) (v OPERATOR(pg_catalog.&) {{.SlotMask}});
END
$kiloshard$;

-- catch_up brings the sequence of an idle shard to the present and returns a fresh value of it. It
-- runs with its owner's rights, since setval takes more than drawing an ID should. So it asks for
-- proof that the caller may draw from the sequence, namely the value that this session drew last,
-- it refuses a sequence that is not of the shard and of the right kind, and it never moves one back.
CREATE OR REPLACE FUNCTION kiloshard.catch_up(shard int, seq pg_catalog.regclass, drawn bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  margin   CONSTANT bigint := {{.SlotsBehind}} + 2 * current_setting('max_connections')::int;
  now_slot bigint := {{template "now" .}} << {{.SequenceBits}};
  last     bigint := pg_sequence_last_value(seq);
  setter   boolean;
  in_line  boolean := false;
  v        bigint;
BEGIN
  IF currval(seq) <> drawn THEN
    RAISE EXCEPTION 'this session did not draw % from sequence %', drawn, seq USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF now_slot - last <= {{.SlotsBehind}} THEN
    RETURN nextval(seq); -- somebody else was quicker
  END IF;
  IF now_slot - last > margin THEN
    PERFORM FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid
      WHERE c.oid = seq AND c.relnamespace = to_regnamespace('{{.SchemaPrefix}}' || lpad(shard::text, 5, '0'))
        AND s.seqtypid = 'bigint'::regtype AND s.seqincrement = 1 AND s.seqcache = 1
        AND s.seqmax = {{.MaxSequenceValue}} AND NOT s.seqcycle;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'sequence % cannot make IDs of shard %', seq, shard USING ERRCODE = '{{.Refused}}',
        HINT = format('It must be a sequence of schema {{.SchemaPrefix}}%s made by: CREATE SEQUENCE … MAXVALUE {{.MaxSequenceValue}}', lpad(shard::text, 5, '0'));
    END IF;
  END IF;
  LOOP
    -- A lock is taken inside a block that ends by an exception: that gives it back at once, also
    -- when the call is cancelled, while what setval did stays.
    BEGIN
      IF in_line THEN
        PERFORM pg_advisory_xact_lock({{.LockClass}}, seq::oid::int);
        setter := true;
      ELSE
        setter := now_slot - last > margin AND pg_try_advisory_xact_lock({{.LockClass}}, seq::oid::int);
      END IF;
      IF NOT setter THEN -- who only waits for a setter goes on together with all others that do
        PERFORM pg_advisory_xact_lock_shared({{.LockClass}}, seq::oid::int);
      END IF;
      now_slot := {{template "now" .}} << {{.SequenceBits}};
      last := pg_sequence_last_value(seq);
      IF setter AND now_slot - last > margin THEN
        -- The clock is read again, since this session may have slept since; and it may have stepped
        -- back meanwhile, so that the others draw again. The slot goes on from the last one, which
        -- keeps the low bits of IDs evenly spread.
        now_slot := ({{template "now" .}} << {{.SequenceBits}}) | ((last + 1) & {{.SlotMask}});
        IF now_slot - last > margin THEN
          v := setval(seq, now_slot);
        END IF;
      END IF;
      IF v IS NULL AND (setter OR now_slot - last <= margin) THEN
        v := nextval(seq);
      END IF;
      RAISE EXCEPTION 'release the lock' USING ERRCODE = '{{.Release}}';
    EXCEPTION WHEN SQLSTATE '{{.Release}}' THEN
      IF v IS NOT NULL THEN
        RETURN v;
      END IF;
      in_line := true; -- it was no setter that held the lock, or one that was cancelled
    END;
  END LOOP;
END
$kiloshard$;

-- next_ids draws n IDs in rising order: the first of each block by next_id(), which keeps to the
-- clock, the rest by nextval alone, under a lock that keeps setters out.
CREATE OR REPLACE FUNCTION kiloshard.next_ids(shard int, seq pg_catalog.regclass, n int) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT AS $kiloshard$
DECLARE
  id    bigint;
  block int;
BEGIN
  IF n OPERATOR(pg_catalog.<) 0 THEN
    RAISE EXCEPTION 'next_ids(%): expected 0 or more', n USING ERRCODE = 'invalid_parameter_value';
  END IF;
  WHILE n OPERATOR(pg_catalog.>) 0 LOOP
    id := kiloshard.next_id(shard, seq);
    RETURN NEXT id;
    n := n OPERATOR(pg_catalog.-) 1;
    block := LEAST(n, {{.Block}});
    -- No block while the sequence is ahead of the clock, or it would run away from it.
    IF n OPERATOR(pg_catalog.>) 0 AND kiloshard.id_time(id) OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp() THEN
      BEGIN
        PERFORM pg_catalog.pg_advisory_xact_lock_shared({{.LockClass}}, seq::pg_catalog.oid::int);
        RETURN QUERY
          SELECT ((v OPERATOR(pg_catalog.>>) {{.SequenceBits}}) OPERATOR(pg_catalog.<<) {{.LowBits}})
            OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.<<) {{.SequenceBits}})
            OPERATOR(pg_catalog.|) (v OPERATOR(pg_catalog.&) {{.SlotMask}})
          FROM (SELECT pg_catalog.nextval(seq) AS v FROM pg_catalog.generate_series(1, block)) AS drawn;
        RAISE EXCEPTION 'release the lock' USING ERRCODE = '{{.Release}}';
      EXCEPTION WHEN SQLSTATE '{{.Release}}' THEN
        n := n OPERATOR(pg_catalog.-) block;
      END;
    END IF;
  END LOOP;
END
$kiloshard$;

-- id_time returns when an ID was made, to the millisecond. Seconds and milliseconds are added one
-- after the other, since a bigint times an interval goes by way of a double.
CREATE OR REPLACE FUNCTION kiloshard.id_time(id bigint) RETURNS timestamp with time zone
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.timezone('UTC', {{literal .EpochPlain}}::timestamp without time zone
  OPERATOR(pg_catalog.+) (((id OPERATOR(pg_catalog.>>) {{.LowBits}}) OPERATOR(pg_catalog./) 1000) OPERATOR(pg_catalog.*) interval '1 second')
  OPERATOR(pg_catalog.+) (((id OPERATOR(pg_catalog.>>) {{.LowBits}}) OPERATOR(pg_catalog.%) 1000) OPERATOR(pg_catalog.*) interval '1 millisecond'));

-- id_shard returns the number of the shard that made an ID.
CREATE OR REPLACE FUNCTION kiloshard.id_shard(id bigint) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ((id OPERATOR(pg_catalog.>>) {{.SequenceBits}}) OPERATOR(pg_catalog.&) {{.ShardMask}})::int;

-- id_sequence returns an ID's slot within its millisecond.
CREATE OR REPLACE FUNCTION kiloshard.id_sequence(id bigint) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (id OPERATOR(pg_catalog.&) {{.SlotMask}})::int;

-- id_floor returns the smallest ID of a millisecond, for scans such as
-- WHERE id >= kiloshard.id_floor(now() - interval '1 day'). Before the epoch it is 0; from
-- {{.EndText}} on, where no IDs are, it is the largest bigint.
CREATE OR REPLACE FUNCTION kiloshard.id_floor(at timestamp with time zone) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN at OPERATOR(pg_catalog.<) {{literal .EpochText}}::timestamp with time zone THEN 0
  WHEN at OPERATOR(pg_catalog.>=) {{literal .EndText}}::timestamp with time zone THEN 9223372036854775807
  ELSE (pg_catalog.floor(EXTRACT(epoch FROM pg_catalog.timezone('UTC', at)) OPERATOR(pg_catalog.*) 1000)::bigint
    OPERATOR(pg_catalog.-) {{.EpochMilliseconds}}) OPERATOR(pg_catalog.<<) {{.LowBits}}
END;

{{define "now"}}floor(date_part('epoch', clock_timestamp()) * 1000 - {{.EpochMilliseconds}})::bigint{{end -}}
