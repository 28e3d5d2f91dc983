-- The sequences of the schemas $1 that make IDs and lead the clock by more than $5 milliseconds, farthest first. The
-- epoch is $2, an ID has $3 bits of slot, and $4 is the largest value of a sequence. A standby returns no rows, and a
-- role sees only the sequences that it may use.
SELECT l.schema, l.sequence, (l.milliseconds / 1000)::float8 AS seconds
FROM (
  SELECT n.nspname AS schema, c.relname AS sequence,
    (CASE WHEN NOT pg_catalog.pg_is_in_recovery() AND pg_catalog.has_sequence_privilege(c.oid, 'USAGE, SELECT')
      THEN pg_catalog.pg_sequence_last_value(c.oid) END >> $3::int4)
    - pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - $2::timestamptz) * 1000 AS milliseconds
  FROM pg_catalog.pg_namespace n
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind = 'S'
  JOIN pg_catalog.pg_sequence s ON s.seqrelid = c.oid
  WHERE n.nspname = ANY ($1::name[]) AND s.seqtypid = 'pg_catalog.int8'::pg_catalog.regtype
    AND s.seqincrement = 1 AND s.seqmax = $4::int8 AND NOT s.seqcycle
) l
WHERE l.milliseconds > $5::float8
ORDER BY l.milliseconds DESC, 1, 2
