package rows

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// matviews returns the populated materialized views of a schema, each after those that it reads: all, or with $2 those that
// read unlogged tables.
const matviews = `
WITH RECURSIVE reads (reader, source) AS (
  SELECT DISTINCT r.ev_class, d.refobjid FROM pg_rewrite r JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
), depth (oid, level) AS (
  SELECT oid, 0 FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('v', 'm')
  UNION
  SELECT r.reader, d.level + 1 FROM depth d JOIN reads r ON r.source = d.oid
), late (oid) AS (
  SELECT oid FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relpersistence = 'u'
  UNION
  SELECT CASE n WHEN 1 THEN r.reader ELSE i.inhparent END FROM late l CROSS JOIN generate_series(1, 2) n
  LEFT JOIN reads r ON n = 1 AND r.source = l.oid LEFT JOIN pg_inherits i ON n = 2 AND i.inhrelid = l.oid WHERE coalesce(r.reader, i.inhparent) IS NOT NULL
)
SELECT c.relname::text FROM depth d JOIN pg_class c ON c.oid = d.oid
WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'm' AND c.relispopulated AND (NOT $2 OR c.oid IN (SELECT oid FROM late)) GROUP BY c.oid ORDER BY max(d.level), c.oid`

// Refresh refreshes the materialized views of a schema, or those that read unlogged tables, in its own session, with
// the rows that their owners see. It reports whether there are any. No client reads them on a target yet.
func Refresh(ctx context.Context, host shards.Host, schema string, unlogged bool) (refreshed bool, err error) {
	conn, err := session.Open(ctx, host)
	if err != nil {
		return false, err
	}
	defer session.Close(ctx, conn)
	views, err := session.Texts(ctx, conn, matviews, schema, unlogged)
	if err != nil {
		return false, err
	}
	for _, view := range views {
		of := session.Name(schema, view)
		if err := session.Run(ctx, conn, "SET row_security = on; REFRESH MATERIALIZED VIEW "+of+"; ANALYZE "+of); err != nil {
			return false, fmt.Errorf("refreshing materialised view %s on %s: %w", view, host.Name, err)
		}
	}
	return len(views) > 0, nil
}
