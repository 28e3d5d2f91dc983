-- The engine that makes IDs by the clock.
--
-- An ID is, from the high bits down: {{.TimeBits}} bits of milliseconds since {{.EpochText}},
-- {{.ShardBits}} bits of shard, {{.TypeBits}} bits of type, {{.SequenceBits}} bits of slot within the millisecond.
--
-- THE SEQUENCE IS THE CLOCK. Every shard has a sequence whose value is itself
-- (milliseconds since the epoch) * {{.Slots}} + slot. An ID is such a value with the shard's number, and
-- the type if the layout has one, put between the two. nextval never returns a value twice, so no ID of
-- a sequence is given twice. The engine only has to keep the sequence near the clock. A call LOOKS
-- FIRST AND DRAWS AFTERWARDS: it reads the sequence's last value, then the clock, and
--
--   near the clock     ({{.WindowBehind}} ms behind to {{.WindowAhead}} ms ahead) draws the next value by nextval: no lock, no
--                      WAL beyond nextval's own;
--   ahead of the clock (more than {{.Slots}} IDs a millisecond, or the clock stepped back) sleeps, then draws;
--   behind the clock   (the shard was idle) has catch_up_to_clock() move the sequence to the present, or for
--                      next_ids() at most {{.WindowAhead}} ms beyond it.
--
-- All waiting comes before the draw, so a call that is canceled while it waits has drawn nothing.
--
-- A call sleeps for as long as the sequence leads the clock. With n sessions the lead is about n slots:
-- n sessions that each draw one value every n slots of time draw as fast as the clock runs. A lead of more
-- than {{.WindowShort}} ms means that the clock stepped back; a call then sleeps only briefly, but long enough
-- for the clock to gain on all sessions together.
--
-- WHY NO ID IS GIVEN TWICE. IDs and values of the sequence map one to one, so a duplicate needs the
-- sequence to go backward, and only setval in catch_up_to_clock() can do that. It does not, because:
--
--   1. Setters exclude each other by a lock on a table in schema kiloshard_locks. Only its owner can lock it, and setters run
--      with the owner's rights. Nobody else may use that schema: in a schema that a role may use, its CREATE RULE and
--      CREATE TRIGGER lock a table before Postgres checks whether they are allowed. All sequences share {{.Setters}} such
--      tables; a session locks one only while it reads the sequence and moves it.
--   2. A setter reads the clock, takes that reading for its value, and in one expression reads the
--      clock again, reads the last value, and sets the sequence: only if the clock has not stepped
--      back below its value, and only if the last value is behind it by more than the window plus
--      the margin, which is one value for every session that the server can have. Until its setval, every other session draws
--      without the lock at most one value: the one it was about to draw, since the sequence was near
--      the clock when it looked. After all of those the sequence is still behind the window, so the
--      next look of a session finds it behind. The session then draws under the lock, or not at
--      all. All values drawn in
--      the gap thus lie within the margin, below what is set. A run of values that a setter takes
--      for itself begins at the present, and the sequence is set to its end.
--   3. A session that is frozen after its nextval has a value of its own; whenever it wakes, no
--      other session has that value. One that is frozen before its nextval draws the value that is next when it wakes.
--   4. A crash or an asynchronous failover may lose the newest values with the WAL. They lie in the
--      past by the time the server is back, unless the sequence led the clock, and catch_up_to_clock() moves
--      the sequence beyond them.
--
-- sql/prove/model checks this argument: it runs every interleaving of three sessions with steps of the
-- clock, freezes, cancels and crashes, and finds a duplicate as soon as one of the safeguards is gone.
--
-- WHAT THIS LEAVES OPEN.
--
--   a. A clock that steps back while a setter is frozen between its second reading of the clock and
--      its setval, which are operands of one expression, for so long that the other sessions, now within
--      the window of the stepped clock, draw all values up to those it takes: at least the window
--      and the margin, which is {{.WindowBehind}} ms of full load and more.
--   b. A lead, then lost WAL: the clock leaps ahead and is put right, so the sequence leads it; before
--      the clock has caught up, an asynchronous failover or a restore loses the newest values. SQL cannot
--      tell a leap from the true time. kiloshard status, kiloshard verify and a metric name the
--      sequences that lead; after such an event, kiloshard id advance moves them beyond the leap.
--   c. Losing WAL and stepping the clock back to before the crash, both at once; a promoted host whose
--      clock is behind the old one's by more than the failover takes is the same.
--   d. Two primaries: a promoted standby, and an old primary that still takes writes.
--   e. DDL on a shard's sequence that is rolled back: ALTER SEQUENCE, TRUNCATE … RESTART IDENTITY, ALTER
--      SEQUENCE … SET UNLOGGED. Values drawn after it in its transaction come again. So does what a
--      nextval or setval other than through these functions does, a sequence with a CACHE, an
--      unlogged one after a crash, or a backup restored while the shard lives on elsewhere.
--      kiloshard migrate plan warns of such statements.
--   f. next_id(seq) with the sequence of another shard. catch_up_to_clock() refuses it, but it is not called
--      as long as that other shard keeps its sequence near the clock. kiloshard verify finds it in
--      the default of a column.
--   g. The upgrade from a release whose setters excluded each other by other locks: a setter of that release which
--      is frozen between its second reading of the clock and its setval, while the new engine moves the sequence.
--   h. Two sequences of a shard can give the same ID, unless they are used with different types: with
--      a sequence for each table, IDs are unique within their table.
--
-- A clock that leaps ahead and back again leaves the sequence ahead: IDs are then as far ahead of
-- the clock as it leapt, until the clock has caught up. A call that is in its pg_sleep when the clock
-- steps back sleeps for as long as the step, once: Postgres measures that sleep by the same clock.

-- draw_id is next_id, below, where the sequence is not near the clock, or an argument is refused.
--
-- This function and the next ones set their own search_path: PL/pgSQL plans a function's expressions again whenever
-- the search_path differs from that of the last call, as in a session that works on one shard after another.
CREATE OR REPLACE FUNCTION kiloshard.draw_id(shard int, seq pg_catalog.regclass{{if .TypeBits}}, type int{{end}}) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  v bigint;
BEGIN
{{- template "check arguments" .}}
  v := kiloshard.draw(shard, seq, 1);
  RETURN {{template "id" .}};
END
$kiloshard$;

-- next_id draws an ID for a shard from one of its sequences. It needs USAGE on the sequence. A type
-- says what the ID names, such as the table. It is one SQL expression, so Postgres inlines it when it
-- plans the statement: near the clock, only Postgres's own functions are called. Postgres evaluates operands
-- from left to right: the last value is read before the clock, and nextval comes before currval, which
-- is the same value, since nothing else draws between the two in a session. The planner removes the range
-- check of a constant, such as the shard in a shard's functions. draw_id() refuses an argument that is NULL or out
-- of range.
--
-- The clock is a double, by date_part, which is exact enough and costs less than EXTRACT. The window is
-- tested as abs(last - middle) <= half of the window.
CREATE OR REPLACE FUNCTION kiloshard.next_id(shard int, seq pg_catalog.regclass{{if .TypeBits}}, type int{{end}}) RETURNS bigint
LANGUAGE sql VOLATILE AS $kiloshard$
SELECT CASE WHEN {{template "in range" .}}
    AND pg_catalog.abs(pg_catalog.pg_sequence_last_value(seq) OPERATOR(pg_catalog.-)
      ((pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) OPERATOR(pg_catalog.-) {{.MiddleSeconds}}) OPERATOR(pg_catalog.*) {{.SlotsPerSecond}}.0))
    OPERATOR(pg_catalog.<=) {{.HalfWindow}}.0
  THEN ((pg_catalog.nextval(seq) OPERATOR(pg_catalog.>>) {{.SequenceBits}}) OPERATOR(pg_catalog.<<) {{.LowBits}})
    OPERATOR(pg_catalog.|) {{template "shard" .}}
{{- if .TypeBits}}
    OPERATOR(pg_catalog.|) {{template "type" .}}
{{- end}}
    OPERATOR(pg_catalog.|) (pg_catalog.currval(seq) OPERATOR(pg_catalog.&) {{.SlotMask}})
  ELSE kiloshard.draw_id(shard, seq{{if .TypeBits}}, type{{end}}) END $kiloshard$;

-- draw returns a fresh value of a sequence: the first of a run that ends with currval(seq) and has at most
-- the wanted number of values. It does all its waiting before it draws.
CREATE OR REPLACE FUNCTION kiloshard.draw(shard int, seq pg_catalog.regclass, wanted int) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  last   bigint;
  behind bigint; -- in slots
  v      bigint;
  shown  boolean := {{template "caller may draw" .}};
BEGIN
  -- First, since a role without the privilege must learn nothing about the sequence. Postgres 17 and later
  -- return a last value of NULL to it; earlier versions raise an error.
  IF NOT has_sequence_privilege(seq, 'USAGE') THEN
    RAISE EXCEPTION 'permission denied for sequence %', seq USING ERRCODE = 'insufficient_privilege';
  END IF;
  LOOP
    last := coalesce(pg_sequence_last_value(seq), 0); -- 0: never used
    behind := floor({{template "clock" .}}) - last;
    IF last >= {{.MaxSequenceValue}} THEN
      {{- template "end of layout" .}}
    ELSIF behind > {{.SlotsBehind}} THEN
      IF NOT shown THEN -- this is a function that runs with its owner's rights: the session shows them by a draw, which makes no ID
        last := nextval(seq);
        shown := true;
      END IF;
      v := kiloshard.catch_up_to_clock(shard, seq, wanted, last);
      IF v IS NOT NULL THEN
        RETURN v;
      END IF;
    ELSE
      IF behind < -{{.SlotsAhead}} THEN
        PERFORM pg_sleep(CASE WHEN behind >= -{{.SlotsShort}} THEN -behind / {{.SlotsPerSecond}}.0
          ELSE greatest(0.001, 2 * current_setting('max_connections')::int / {{.SlotsPerSecond}}.0) END);
      END IF;
      RETURN nextval(seq);
    END IF;
  END LOOP;
END
$kiloshard$;

-- The tables that setters lock to exclude each other. They are empty, and only their owner has any privilege on them.
-- SHARE UPDATE EXCLUSIVE conflicts with itself, and with no lock that a role without privileges can take, such as that of
-- a statement that only names the table.
DO $kiloshard$
BEGIN
  FOR i IN 0 .. {{.Setters}} - 1 LOOP
    EXECUTE pg_catalog.format('CREATE TABLE IF NOT EXISTS kiloshard_locks.setter_%s ()', i);
  END LOOP;
END
$kiloshard$;

-- catch_up_to_clock moves the sequence of an idle shard to the present, or draws one value if the sequence is less than the
-- margin behind. It returns the first of a run of fresh values, which ends with currval(seq), or NULL if the sequence has
-- moved on since the caller read it and the caller must look again. It waits for another setter for {{.SetterWait}}, unless
-- lock_timeout says otherwise, and then fails with an error that names the process.
--
-- It runs with its owner's rights, since setval and the lock need more privileges than a role that makes IDs should
-- have. So it refuses a sequence that is not of the shard or not of the right kind, and a caller that may not draw from it: its role
-- needs USAGE, or its session has drawn from the sequence, as only a role with USAGE can. It only moves the sequence to the clock,
-- never back.
CREATE OR REPLACE FUNCTION kiloshard.catch_up_to_clock(shard int, seq pg_catalog.regclass, wanted int, seen bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  margin CONSTANT bigint := {{template "margin" .}};
  run    CONSTANT bigint := greatest(1, least(wanted, {{.SlotsAhead}}));
  setter CONSTANT text := 'kiloshard_locks.setter_' || (seq::oid::bigint % {{.Setters}});
  v      bigint;
  holder text;
BEGIN
  IF NOT {{template "caller may draw" .}} THEN
    PERFORM currval(seq); -- an error in a session that has not drawn from it
  END IF;
  PERFORM FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid
    WHERE c.oid = seq AND c.relnamespace = to_regnamespace('{{.SchemaPrefix}}' || lpad(shard::text, 5, '0'))
      AND s.seqtypid = 'bigint'::regtype AND s.seqincrement = 1 AND s.seqcache = 1
      AND s.seqmax = {{.MaxSequenceValue}} AND NOT s.seqcycle;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'sequence % cannot make IDs of shard %', seq, shard USING ERRCODE = '{{.Refused}}',
      HINT = format('It must be a sequence of schema {{.SchemaPrefix}}%s made by: CREATE SEQUENCE … MAXVALUE {{.MaxSequenceValue}}', lpad(shard::text, 5, '0'));
  END IF;
  -- This block ends by an exception, which releases the lock at once, also when the call is canceled. setval is not
  -- undone.
  BEGIN
    IF current_setting('lock_timeout') = '0' THEN
      holder := set_config('lock_timeout', '{{.SetterWait}}', true); -- until the end of this block
    END IF;
    EXECUTE 'LOCK TABLE ' || setter || ' IN SHARE UPDATE EXCLUSIVE MODE';
    -- The clock is read here since this session may have waited. The slot follows the last one,
    -- which spreads the low bits of IDs evenly.
    v := ((floor({{template "clock" .}})::bigint >> {{.SequenceBits}}) << {{.SequenceBits}}) | ((seen + 1) & {{.SlotMask}});
    IF v + run - 1 > {{.MaxSequenceValue}} THEN
      {{- template "end of layout" .}}
    END IF;
    -- CASE evaluates its conditions in order: the clock, then the last value, then setval. nextval runs under the lock
    -- here, since another setter may have found the sequence further behind, and its margin allows one value a session.
    v := CASE WHEN v - margin <= seen THEN
        CASE WHEN v + {{.Slots}} - {{.SlotsBehind}} > seen AND coalesce(pg_sequence_last_value(seq), 0) = seen THEN nextval(seq) END
      WHEN (floor({{template "clock" .}})::bigint >> {{.SequenceBits}}) < (v >> {{.SequenceBits}}) THEN NULL
      WHEN coalesce(pg_sequence_last_value(seq), 0) = seen
      THEN setval(seq, v + run - 1) - run + 1 END;
    RAISE EXCEPTION 'release the lock' USING ERRCODE = '{{.Release}}';
  EXCEPTION
    WHEN SQLSTATE '{{.Release}}' THEN
      RETURN v;
    WHEN lock_not_available THEN
      SELECT string_agg(coalesce(format('process %s, role %s', l.pid, coalesce(a.usename, '?')), 'a prepared transaction'), '; ') INTO holder
        FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE l.locktype = 'relation' AND l.granted AND l.relation = setter::regclass
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
      RAISE EXCEPTION 'timed out waiting for the session that moves sequence % or one that shares its lock: %', seq, coalesce(holder, 'it has just ended')
        USING ERRCODE = 'lock_not_available', HINT = 'Retry, or inspect that process.';
  END;
END
$kiloshard$;

-- next_ids draws n IDs{{if .TypeBits}}, of type 0,{{end}} in rising order. On an idle shard it takes them as one run, which
-- costs as much as one ID. On a busy shard it draws them one by one, as next_id() does, and reads the clock for each.
CREATE OR REPLACE FUNCTION kiloshard.next_ids(shard int, seq pg_catalog.regclass, n int) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
{{- if .TypeBits}}
  type  CONSTANT int := 0;
{{- end}}
  first bigint;
  block int;
BEGIN
  IF n < 0 THEN
    RAISE EXCEPTION 'next_ids(%): expected 0 or more', n USING ERRCODE = 'invalid_parameter_value';
  END IF;
{{- template "check arguments" .}}
  WHILE n > 0 LOOP
    first := kiloshard.draw(shard, seq, n);
    n := n - (currval(seq) - first + 1);
    RETURN QUERY SELECT {{template "id" .}} FROM generate_series(first, currval(seq)) AS v;
    block := least(n, {{.Block}});
    RETURN QUERY SELECT kiloshard.next_id(shard, seq{{if .TypeBits}}, type{{end}}) FROM generate_series(1, block);
    n := n - block;
  END LOOP;
END
$kiloshard$;

{{define "id"}}((v >> {{.SequenceBits}}) << {{.LowBits}}) | {{template "shard" .}}
{{- if .TypeBits}} | {{template "type" .}}{{end}} | (v & {{.SlotMask}}){{end -}}
{{/* The role of the caller, also inside a function with its owner's rights, unless another such function calls it. */ -}}
{{define "caller may draw"}}has_sequence_privilege(CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role')::name END, seq, 'USAGE'){{end -}}
{{define "clock"}}((date_part('epoch', clock_timestamp()) - {{.EpochSeconds}}) * {{.SlotsPerSecond}}.0){{end -}}
{{/* One value for each process that can run SQL. */ -}}
{{define "margin"}}({{.SlotsBehind}} + current_setting('max_connections')::int + current_setting('max_worker_processes')::int + current_setting('max_wal_senders')::int){{end -}}
{{define "end of layout"}}
      RAISE EXCEPTION 'sequence % is at its end: this layout has no IDs after {{.EndText}}', seq USING ERRCODE = 'sequence_generator_limit_exceeded';
{{- end -}}
