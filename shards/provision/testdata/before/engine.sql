-- The kiloshard helper schema: one engine that makes the IDs of all shards of this database. This part
-- refuses what must not be, and keeps the settings. engine.sql follows, or for a layout without a time
-- local.sql, and then parts.sql, which takes IDs apart.
--
-- Everything is schema-qualified, operators too, so that no search_path can slip in a function or
-- an operator of somebody else's. OPERATOR(pg_catalog.+) is just +, but it has one precedence with
-- all the others, hence the parentheses.

-- Waits for an installation under way, and keeps out others until this transaction ends.
SELECT pg_catalog.pg_advisory_xact_lock(1802071151, 0);

-- Refuses what would change the meaning of IDs that exist.
DO $kiloshard$
DECLARE
  here   record;
  shards bigint;
BEGIN
  IF pg_catalog.clock_timestamp() < '2026-01-01T00:00:00Z'::timestamp with time zone
    OR pg_catalog.clock_timestamp() >= '2060-11-03T19:53:47.776Z'::timestamp with time zone THEN
    RAISE EXCEPTION 'the clock of this host says %, IDs can be made from % until %',
      pg_catalog.clock_timestamp(), '2026-01-01T00:00:00Z', '2060-11-03T19:53:47.776Z'
      USING ERRCODE = 'KS001';
  END IF;
  IF pg_catalog.to_regclass('kiloshard.settings') IS NULL THEN
    RETURN;
  END IF;
  -- A database of a version that knew no types.
  ALTER TABLE kiloshard.settings ADD COLUMN IF NOT EXISTS type_bits int NOT NULL DEFAULT 0;
  SELECT * INTO here FROM kiloshard.settings;
  IF here IS NULL
    OR (here.cluster, here.schema_prefix, here.epoch, here.time_bits, here.shard_bits, here.type_bits, here.sequence_bits)
     = ('test', 'shard_', '2026-01-01T00:00:00Z'::timestamp with time zone,
        40, 13, 0, 10) THEN
    RETURN;
  END IF;
  SELECT pg_catalog.count(*) INTO shards FROM pg_catalog.pg_namespace
    WHERE nspname ~ ('^' || here.schema_prefix || '[0-9]{5}(__|$)');
  IF shards > 0 THEN
    RAISE EXCEPTION 'this database holds % shards of cluster "%" with prefix "%", epoch % and layout % (usable bits); the map says cluster "%" with prefix "%", epoch % and layout %',
      shards, here.cluster, here.schema_prefix, here.epoch,
      pg_catalog.format('%s time|%s shard|%s type|%s sequence', here.time_bits, here.shard_bits, here.type_bits, here.sequence_bits),
      'test', 'shard_', '2026-01-01T00:00:00Z'::timestamp with time zone,
      '40 time|13 shard|0 type|10 sequence'
      USING ERRCODE = 'KS001', HINT = 'None of these may change while shards exist.';
  END IF;
  -- Another layout has other functions: what it lacks goes, what it has comes below.
  FOR here IN
    SELECT p.oid::pg_catalog.regprocedure AS function FROM pg_catalog.pg_proc p
    WHERE p.pronamespace = pg_catalog.to_regnamespace('kiloshard')
      AND p.proname IN ('next_id', 'next_ids', 'id_of', 'catch_up', 'id_time', 'id_shard', 'id_type', 'id_sequence', 'id_floor')
  LOOP
    EXECUTE pg_catalog.format('DROP FUNCTION %s', here.function);
  END LOOP;
END
$kiloshard$;

CREATE SCHEMA IF NOT EXISTS kiloshard;

-- What the functions below were rendered with. Changing a row here changes nothing else.
CREATE TABLE IF NOT EXISTS kiloshard.settings (
  one           boolean PRIMARY KEY DEFAULT true CHECK (one),
  cluster       text NOT NULL,
  schema_prefix text NOT NULL,
  epoch         timestamp with time zone NOT NULL,
  time_bits     int NOT NULL, -- usable ones: the sign bit stays clear; 0 in IDs without a time
  shard_bits    int NOT NULL,
  type_bits     int NOT NULL DEFAULT 0,
  sequence_bits int NOT NULL,
  engine        text NOT NULL -- which version of these functions is installed
);

INSERT INTO kiloshard.settings (cluster, schema_prefix, epoch, time_bits, shard_bits, type_bits, sequence_bits, engine)
VALUES ('test', 'shard_', '2026-01-01T00:00:00Z', 40, 13, 0, 10, 'fc0a92c8f59d2c8d')
ON CONFLICT (one) DO UPDATE SET
  cluster = excluded.cluster, schema_prefix = excluded.schema_prefix, epoch = excluded.epoch,
  time_bits = excluded.time_bits, shard_bits = excluded.shard_bits, type_bits = excluded.type_bits,
  sequence_bits = excluded.sequence_bits, engine = excluded.engine;

-- The engine that makes IDs by the clock.
--
-- An ID is, from the high bits down: 40 bits of milliseconds since 2026-01-01T00:00:00Z,
-- 13 bits of shard, 0 bits of type, 10 bits of slot within the millisecond.
--
-- THE SEQUENCE IS THE CLOCK. Every shard has a sequence whose value is itself
-- (milliseconds since the epoch) * 1024 + slot. An ID is such a value with the shard's number, and
-- the type if the layout has one, put between the two. nextval never gives a value twice, so no ID of
-- a sequence is given twice. What is left to do is to keep the sequence near the clock:
--
--   near the clock     the value is used as it is: no lock, no WAL beyond nextval's own;
--   behind the clock   (the shard was idle) catch_up() moves the sequence to the present, or for
--                      next_ids() at most 5 ms beyond it;
--   ahead of the clock (more than 1024 IDs a millisecond, or the clock stepped back) the call
--                      sleeps for a millisecond and then uses its value: never an error, never a
--                      duplicate, and the lead shrinks, since a session then draws one value a
--                      millisecond while the clock gains 1024 slots.
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
--      within the margin, far below the present. A run of values that a setter takes for itself
--      begins at the present, and the sequence is set to its end.
--   3. A session that is frozen between nextval and its return holds a value of its own; whenever
--      it wakes, nobody else has that value.
--   4. A crash or an asynchronous failover may lose the newest values with the WAL. They lie in the
--      past by the time the server is back, and catch_up() moves the sequence beyond them.
--
-- WHAT THIS LEAVES OPEN.
--
--   a. A clock that steps back while a setter is frozen between its second reading of the clock and
--      its setval, which are neighbouring expressions, for so long that the other sessions, now
--      within the window of the stepped clock, draw all values up to those it takes: at least the
--      window and the margin, which is 15 ms of full load and more.
--   b. Losing WAL and stepping the clock back to before the crash, both at once.
--   c. A nextval or setval on a shard's sequence other than through these functions, a sequence
--      with a CACHE, or a backup restored while the shard lives on elsewhere.
--   d. next_id(seq) with the sequence of another shard. catch_up() refuses it, but it is not called
--      as long as that other shard keeps its sequence near the clock. kiloshard verify finds it in
--      the default of a column.
--   e. Two sequences of a shard can give the same ID, unless they are used with different types: with
--      a sequence for each table, IDs are unique within their table.
--
-- A clock that leaps ahead and back again leaves the sequence ahead: IDs are then as far ahead of
-- the clock as it leapt, and a session makes one a millisecond until the clock has caught up. A call
-- that is in its pg_sleep when the clock steps back sleeps for as long as the step, once: Postgres
-- measures that sleep by the same clock.

-- id_of makes the ID of a value that this session has just drawn from one of the shard's sequences; at
-- is what the clock said right after, in seconds since 1970. A type says what the ID names, such as
-- the table. The clock is a double, by date_part, which is exact enough and costs less than EXTRACT.
--
-- It has a path of its own: PL/pgSQL plans a function's expressions anew whenever the path is another
-- than the last time, as it is for a session that works for one shard after the other.
CREATE OR REPLACE FUNCTION kiloshard.id_of(shard int, seq pg_catalog.regclass, v bigint, at double precision) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $kiloshard$
BEGIN
  -- Unless v lies from 15 ms behind the clock to 5 ms ahead of it: abs(v - middle) > half the window.
  IF pg_catalog.abs(v OPERATOR(pg_catalog.-) ((at OPERATOR(pg_catalog.-) 1767225600.005000::double precision) OPERATOR(pg_catalog.*) 1024000.0))
    OPERATOR(pg_catalog.>) 10240.0 THEN
    IF v OPERATOR(pg_catalog.<) ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) 1767225600.000000::double precision) OPERATOR(pg_catalog.*) 1024000.0) THEN
      v := kiloshard.catch_up(shard, seq, v, 1);
    ELSE
      PERFORM pg_catalog.pg_sleep(0.001);
    END IF;
  END IF;
  -- In bits: (v >> slots) << (shard + type + slots) | shard << (type + slots) | type << slots | v & (2^slots - 1)
  RETURN ((v OPERATOR(pg_catalog.>>) 10) OPERATOR(pg_catalog.<<) 23)
    OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.<<) 10)
    OPERATOR(pg_catalog.|) (v OPERATOR(pg_catalog.&) 1023);
END
$kiloshard$;

-- next_id draws an ID for a shard from one of its sequences. It needs USAGE on the sequence. Being one
-- expression in SQL, it is put in line when a statement is planned: near the clock, no function is
-- called at all but Postgres's own, and a session has nothing to compile or to plan anew for the next
-- shard. The value is drawn before the clock is read, since Postgres evaluates operands from left to
-- right. Afterwards it is currval: nothing else draws between the two in a session. A type out of
-- range is id_of's to refuse, before a value is drawn.
CREATE OR REPLACE FUNCTION kiloshard.next_id(shard int, seq pg_catalog.regclass) RETURNS bigint
LANGUAGE sql VOLATILE AS $kiloshard$
SELECT CASE WHEN pg_catalog.abs(pg_catalog.nextval(seq) OPERATOR(pg_catalog.-)
      ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) 1767225600.005000::double precision) OPERATOR(pg_catalog.*) 1024000.0))
    OPERATOR(pg_catalog.<=) 10240.0
  THEN ((pg_catalog.currval(seq) OPERATOR(pg_catalog.>>) 10) OPERATOR(pg_catalog.<<) 23)
    OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.<<) 10)
    OPERATOR(pg_catalog.|) (pg_catalog.currval(seq) OPERATOR(pg_catalog.&) 1023)
  ELSE kiloshard.id_of(shard, seq, pg_catalog.currval(seq), pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()))
  END $kiloshard$;

-- catch_up brings the sequence of an idle shard to the present and returns a fresh value of it: the
-- first of a run that ends with currval(seq) and has as many values as are wanted, or fewer. It runs with its owner's rights, since setval takes more than drawing an ID should. So it asks for
-- proof that the caller may draw from the sequence, namely the value that this session drew last,
-- it refuses a sequence that is not of the shard and of the right kind, and it never moves one back.
CREATE OR REPLACE FUNCTION kiloshard.catch_up(shard int, seq pg_catalog.regclass, drawn bigint, wanted int) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  margin   CONSTANT bigint := 15360 + 2 * current_setting('max_connections')::int;
  now_slot bigint := floor(date_part('epoch', clock_timestamp()) * 1000 - 1767225600000)::bigint << 10;
  last     bigint := pg_sequence_last_value(seq);
  setter   boolean;
  in_line  boolean := false;
  v        bigint;
BEGIN
  IF currval(seq) <> drawn THEN
    RAISE EXCEPTION 'this session did not draw % from sequence %', drawn, seq USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF now_slot - last <= 15360 THEN
    RETURN nextval(seq); -- somebody else was quicker
  END IF;
  IF now_slot - last > margin THEN
    PERFORM FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid
      WHERE c.oid = seq AND c.relnamespace = to_regnamespace('shard_' || lpad(shard::text, 5, '0'))
        AND s.seqtypid = 'bigint'::regtype AND s.seqincrement = 1 AND s.seqcache = 1
        AND s.seqmax = 1125899906842623 AND NOT s.seqcycle;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'sequence % cannot make IDs of shard %', seq, shard USING ERRCODE = 'KS001',
        HINT = format('It must be a sequence of schema shard_%s made by: CREATE SEQUENCE … MAXVALUE 1125899906842623', lpad(shard::text, 5, '0'));
    END IF;
  END IF;
  LOOP
    -- A lock is taken inside a block that ends by an exception: that gives it back at once, also
    -- when the call is cancelled, while what setval did stays.
    BEGIN
      IF in_line THEN
        PERFORM pg_advisory_xact_lock(1802071151, seq::oid::int);
        setter := true;
      ELSE
        setter := now_slot - last > margin AND pg_try_advisory_xact_lock(1802071151, seq::oid::int);
      END IF;
      IF NOT setter THEN -- who only waits for a setter goes on together with all others that do
        PERFORM pg_advisory_xact_lock_shared(1802071151, seq::oid::int);
      END IF;
      now_slot := floor(date_part('epoch', clock_timestamp()) * 1000 - 1767225600000)::bigint << 10;
      last := pg_sequence_last_value(seq);
      IF setter AND now_slot - last > margin THEN
        -- The clock is read again, since this session may have slept since; and it may have stepped
        -- back meanwhile, so that the others draw again. The slot goes on from the last one, which
        -- keeps the low bits of IDs evenly spread.
        now_slot := (floor(date_part('epoch', clock_timestamp()) * 1000 - 1767225600000)::bigint << 10) | ((last + 1) & 1023);
        IF now_slot - last > margin THEN
          v := now_slot;
          PERFORM setval(seq, now_slot + greatest(1, least(wanted, 5120)) - 1);
        END IF;
      END IF;
      IF v IS NULL AND (setter OR now_slot - last <= margin) THEN
        v := nextval(seq);
      END IF;
      RAISE EXCEPTION 'release the lock' USING ERRCODE = 'KS000';
    EXCEPTION WHEN SQLSTATE 'KS000' THEN
      IF v IS NOT NULL THEN
        RETURN v;
      END IF;
      in_line := true; -- it was no setter that held the lock, or one that was cancelled
    END;
  END LOOP;
END
$kiloshard$;

-- next_ids draws n IDs in rising order. On an idle shard it takes them as one run, which
-- costs what one ID costs there. On a busy one it draws blocks, the first value of each as id_of()
-- does, which keeps to the clock, the rest by nextval alone, under a lock that keeps setters out.
CREATE OR REPLACE FUNCTION kiloshard.next_ids(shard int, seq pg_catalog.regclass, n int) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT AS $kiloshard$
DECLARE
  v     bigint;
  block int;
BEGIN
  IF n OPERATOR(pg_catalog.<) 0 THEN
    RAISE EXCEPTION 'next_ids(%): expected 0 or more', n USING ERRCODE = 'invalid_parameter_value';
  END IF;
  WHILE n OPERATOR(pg_catalog.>) 0 LOOP
    v := pg_catalog.nextval(seq);
    IF v OPERATOR(pg_catalog.<) (((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) 1767225600.000000::double precision) OPERATOR(pg_catalog.*) 1024000.0) OPERATOR(pg_catalog.-) 15360) THEN
      v := kiloshard.catch_up(shard, seq, v, n);
      RETURN QUERY SELECT ((drawn.v OPERATOR(pg_catalog.>>) 10) OPERATOR(pg_catalog.<<) 23)
          OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.<<) 10)
          OPERATOR(pg_catalog.|) (drawn.v OPERATOR(pg_catalog.&) 1023)
        FROM pg_catalog.generate_series(v, pg_catalog.currval(seq)) AS drawn(v);
      n := n OPERATOR(pg_catalog.-) (pg_catalog.currval(seq) OPERATOR(pg_catalog.-) v OPERATOR(pg_catalog.+) 1);
      CONTINUE;
    END IF;
    RETURN NEXT kiloshard.id_of(shard, seq, v, pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()));
    n := n OPERATOR(pg_catalog.-) 1;
    block := LEAST(n, 127);
    -- No block while the sequence is a millisecond ahead of the clock, or it would run away from it.
    IF n OPERATOR(pg_catalog.>) 0 AND v OPERATOR(pg_catalog.<) (((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) 1767225600.000000::double precision) OPERATOR(pg_catalog.*) 1024000.0) OPERATOR(pg_catalog.+) 1024) THEN
      BEGIN
        PERFORM pg_catalog.pg_advisory_xact_lock_shared(1802071151, seq::pg_catalog.oid::int);
        RETURN QUERY SELECT ((drawn.v OPERATOR(pg_catalog.>>) 10) OPERATOR(pg_catalog.<<) 23)
          OPERATOR(pg_catalog.|) (shard OPERATOR(pg_catalog.<<) 10)
          OPERATOR(pg_catalog.|) (drawn.v OPERATOR(pg_catalog.&) 1023)
          FROM (SELECT pg_catalog.nextval(seq) AS v FROM pg_catalog.generate_series(1, block)) AS drawn;
        RAISE EXCEPTION 'release the lock' USING ERRCODE = 'KS000';
      EXCEPTION WHEN SQLSTATE 'KS000' THEN
        n := n OPERATOR(pg_catalog.-) block;
      END;
    END IF;
  END LOOP;
END
$kiloshard$;


-- The functions that take IDs apart.

-- id_time returns when an ID was made, to the millisecond. Seconds and milliseconds are added one
-- after the other, since a bigint times an interval goes by way of a double.
CREATE OR REPLACE FUNCTION kiloshard.id_time(id bigint) RETURNS timestamp with time zone
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN pg_catalog.timezone('UTC', '2026-01-01 00:00:00'::timestamp without time zone
  OPERATOR(pg_catalog.+) (((id OPERATOR(pg_catalog.>>) 23) OPERATOR(pg_catalog./) 1000) OPERATOR(pg_catalog.*) interval '1 second')
  OPERATOR(pg_catalog.+) (((id OPERATOR(pg_catalog.>>) 23) OPERATOR(pg_catalog.%) 1000) OPERATOR(pg_catalog.*) interval '1 millisecond'));

-- id_shard returns the number of the shard that made an ID.
CREATE OR REPLACE FUNCTION kiloshard.id_shard(id bigint) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN ((id OPERATOR(pg_catalog.>>) 10) OPERATOR(pg_catalog.&) 8191)::int;

-- id_sequence returns an ID's slot within its millisecond.
CREATE OR REPLACE FUNCTION kiloshard.id_sequence(id bigint) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN (id OPERATOR(pg_catalog.&) 1023)::int;

-- id_floor returns the smallest ID of a millisecond, for scans such as
-- WHERE id >= kiloshard.id_floor(now() - interval '1 day'). Before the epoch it is 0; from
-- 2060-11-03T19:53:47.776Z on, where no IDs are, it is the largest bigint.
CREATE OR REPLACE FUNCTION kiloshard.id_floor(at timestamp with time zone) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
  WHEN at OPERATOR(pg_catalog.<) '2026-01-01T00:00:00Z'::timestamp with time zone THEN 0
  WHEN at OPERATOR(pg_catalog.>=) '2060-11-03T19:53:47.776Z'::timestamp with time zone THEN 9223372036854775807
  ELSE (pg_catalog.floor(EXTRACT(epoch FROM pg_catalog.timezone('UTC', at)) OPERATOR(pg_catalog.*) 1000)::bigint
    OPERATOR(pg_catalog.-) 1767225600000) OPERATOR(pg_catalog.<<) 23
END;
