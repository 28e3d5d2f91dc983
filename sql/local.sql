-- The engine that makes IDs without a time, of the values of sequences alone.
--
-- An ID is, from the high bits down: {{.ShardBits}} bits of shard, {{.TypeBits}} bits of type, {{.SequenceBits}} bits of the value
-- of a sequence. Pinterest made its IDs so, of 16, 10 and 36 bits, the lowest an auto_increment of
-- the table's.
--
-- WHAT THIS PROMISES. nextval never gives a value twice, so the IDs of one sequence are unique, and
-- rise in the order in which they were drawn. They take neither a clock nor a lock, and no WAL beyond
-- nextval's own. After {{.MaxSequenceValue}} values a sequence is at its end, which is an error; a
-- sequence that goes further is refused: no ID runs over into the field above. nextval knows no
-- transactions: what was drawn and rolled back is a gap.
--
-- WHAT THIS LEAVES OPEN. There is no clock to move a sequence beyond what it has given already.
--
--   a. Postgres writes a sequence to the WAL 32 values ahead of what it has given. A crash thus skips
--      values, and repeats none that a committed row holds. One that a client was told before its
--      transaction was committed, or with synchronous_commit off, may come again.
--   b. An asynchronous failover loses the newest WAL: the new primary gives again what the old one
--      gave last. So does a backup that is restored. To prevent that, replicate synchronously,
--      or move the sequences ahead by setval before the first new row.
--   c. Two sequences of a shard give the same IDs, unless they are used with different types. So let
--      each type have one sequence, or have IDs that are unique within their table only. next_id()
--      draws from next_id_seq, with type 0 where there are types.
--   d. next_id(seq) with the sequence of another shard is not noticed here; kiloshard verify finds it
--      in the default of a column.
--   e. A setval that moves a sequence back, or a sequence that cycles.

-- next_id draws an ID for a shard from one of its sequences. It needs USAGE on the sequence.
CREATE OR REPLACE FUNCTION kiloshard.next_id(shard int, seq pg_catalog.regclass{{if .TypeBits}}, type int{{end}}) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $kiloshard$
DECLARE
  v bigint;
BEGIN
{{- template "check arguments" .}}
  v := pg_catalog.nextval(seq);
  IF v OPERATOR(pg_catalog.<) 0 OR v OPERATOR(pg_catalog.>) {{.SlotMask}} THEN
    RAISE EXCEPTION 'sequence % gave %: expected 0 to {{.SlotMask}}', seq, v USING ERRCODE = '{{.Refused}}',
      HINT = 'It must be made by: CREATE SEQUENCE … MAXVALUE {{.MaxSequenceValue}}';
  END IF;
  -- In bits: shard << (type + sequence) | type << sequence | v
  RETURN {{template "shard" .}}
{{- if .TypeBits}}
    OPERATOR(pg_catalog.|) {{template "type" .}}
{{- end}}
    OPERATOR(pg_catalog.|) v;
END
$kiloshard$;

-- next_ids draws n IDs, of type 0 where there are types, in rising order.
CREATE OR REPLACE FUNCTION kiloshard.next_ids(shard int, seq pg_catalog.regclass, n int) RETURNS SETOF bigint
LANGUAGE plpgsql VOLATILE STRICT AS $kiloshard$
BEGIN
  IF n OPERATOR(pg_catalog.<) 0 THEN
    RAISE EXCEPTION 'next_ids(%): expected 0 or more', n USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY SELECT kiloshard.next_id(shard, seq{{if .TypeBits}}, 0{{end}}) FROM pg_catalog.generate_series(1, n);
END
$kiloshard$;
