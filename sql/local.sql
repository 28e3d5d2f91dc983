-- The engine that makes IDs without a time, from the values of sequences alone.
--
-- An ID is, from the high bits down: {{.ShardBits}} bits of shard, {{.TypeBits}} bits of type, {{.SequenceBits}} bits of the value
-- of a sequence. Pinterest's IDs have the same parts, of 16, 10 and 36 bits; the lowest is the table's
-- auto_increment.
--
-- WHAT THIS PROMISES. nextval never returns a value twice, so the IDs of one sequence are unique, and
-- rise in the order in which they were drawn. They need no clock, no lock, and no WAL beyond
-- nextval's own. After {{.MaxSequenceValue}} values a sequence is at its end, which is an error; a
-- sequence with a higher maximum is refused: no ID overflows into the field above. nextval is not
-- transactional: a value drawn in a transaction that rolls back leaves a gap.
--
-- WHAT THIS LEAVES OPEN. No clock moves a sequence beyond the values it has returned.
--
--   a. Postgres logs a sequence 32 values ahead of the last one it returned. So a crash skips values,
--      and repeats none that a committed row holds. A value that a client received before its
--      transaction committed, or with synchronous_commit off, may come again.
--   b. An asynchronous failover loses the newest WAL: the new primary repeats the old one's last
--      values. So does a backup that is restored. To prevent that, replicate synchronously,
--      or move the sequences ahead by setval before the first new row.
--   c. Two sequences of a shard return the same IDs, unless they are used with different types. So give
--      each type one sequence, or accept IDs that are unique only within their table. next_id()
--      draws from next_id_seq, with type 0 where there are types.
--   d. next_id(seq) does not detect the sequence of another shard; kiloshard verify finds it
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
