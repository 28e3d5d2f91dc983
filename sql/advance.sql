-- advance moves a shard's ID sequences beyond a time: all later IDs have a later millisecond. It never moves a sequence
-- back, and returns the sequences that it moved. Use it after lost WAL: SQL cannot know which IDs were lost with it. Only
-- the owner of the sequences may call it.
--
-- ALTER SEQUENCE, which changes nothing here, takes a lock that blocks nextval, waits for all transactions that have used
-- the sequence, and holds the lock until the transaction ends. So nobody draws between the look at the last value and
-- setval, however long this session is frozen, even if the transaction rolls back.
CREATE OR REPLACE FUNCTION kiloshard.advance(shard int, beyond timestamp with time zone)
RETURNS TABLE (sequence name, was timestamp with time zone)
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $kiloshard$
DECLARE
  schema CONSTANT text := '{{.SchemaPrefix}}' || lpad(shard::text, 5, '0');
  target CONSTANT numeric := (floor(extract(epoch FROM beyond) * 1000) - {{.EpochMilliseconds}} + 1) * {{.Slots}} - 1;
  last   bigint;
  seq    regclass;
BEGIN
  IF target < 0 OR target >= {{.MaxSequenceValue}} THEN
    RAISE EXCEPTION 'advance(%, %): expected a time from {{.EpochText}} to before {{.EndText}}', shard, beyond USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR seq, sequence IN
    SELECT c.oid, c.relname FROM pg_class c JOIN pg_sequence s ON s.seqrelid = c.oid
    WHERE c.relnamespace = to_regnamespace(schema) AND s.seqtypid = 'bigint'::regtype
      AND s.seqincrement = 1 AND s.seqmax = {{.MaxSequenceValue}} AND NOT s.seqcycle
    ORDER BY c.relname
  LOOP
    CONTINUE WHEN pg_sequence_last_value(seq) >= target; -- without a lock: it goes up only
    EXECUTE format('ALTER SEQUENCE %I.%I MAXVALUE {{.MaxSequenceValue}}', schema, sequence);
    last := coalesce(pg_sequence_last_value(seq), 0);
    IF last < target THEN
      PERFORM setval(seq, target::bigint);
      was := timestamp with time zone {{literal .EpochText}} + (last >> {{.SequenceBits}}) * interval '1 millisecond';
      RETURN NEXT;
    END IF;
  END LOOP;
END
$kiloshard$;
