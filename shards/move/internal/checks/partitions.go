package checks

import "github.com/kiloshard/kiloshard/shards/move/internal/rows"

// partitionsQuery finds partitioned tables whose rows would belong to other partitions on the target: Postgres hashes a
// label of an enum by its OID, and hashes and orders a regclass or the like by the OID that it names. The target has
// other OIDs. Its parameter: the schema.
const partitionsQuery = `
WITH RECURSIVE part (rel, strategy, attnum, type) AS (
  SELECT p.partrelid, p.partstrat, a.attnum, a.atttypid
  FROM pg_partitioned_table p JOIN pg_class c ON c.oid = p.partrelid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
  WHERE c.relnamespace = to_regnamespace($1) AND p.partstrat IN ('h', 'r')
    AND EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.objsubid = a.attnum -- the key reads it
      AND d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid AND d.refobjsubid = 0 AND d.deptype = 'i')
  UNION
  SELECT p.rel, p.strategy, p.attnum, inside.type FROM part p JOIN pg_type t ON t.oid = p.type CROSS JOIN LATERAL (
    SELECT unnest(ARRAY[t.typbasetype, t.typelem])
    UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
    UNION ALL SELECT f.atttypid FROM pg_attribute f WHERE f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
  ) inside (type)
)
SELECT DISTINCT true, format('partitioned table %s: the %s of column %I depends on OIDs, by type %s, which differ on the target, and so would the partitions of its rows: expected another partition key, or split --promote',
  p.rel::regclass, CASE p.strategy WHEN 'h' THEN 'HASH' ELSE 'RANGE' END, a.attname, p.type::regtype)
FROM part p JOIN pg_type t ON t.oid = p.type JOIN pg_attribute a ON a.attrelid = p.rel AND a.attnum = p.attnum
WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typname = ANY ('` + rows.Named + `')
  OR t.typtype = 'e' AND p.strategy = 'h' AND EXISTS ( -- an operator class of one type, or of an expression's, hashes otherwise
    SELECT FROM pg_partitioned_table k, unnest(k.partclass::oid[]) c JOIN pg_opclass o ON o.oid = c JOIN pg_type i ON i.oid = o.opcintype
    WHERE k.partrelid = p.rel AND i.typtype = 'p')
ORDER BY 2`
