// Package locks takes the locks of a shard, and waits for those of others.
package locks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
)

// lockTables locks all tables in a mode. A statement on a partitioned table locks that first, waits for the locks of its partitions, and then writes
// there, even if they have other names by then. So partitioned tables are locked, too, and parents before their children, as statements do.
var lockTables = `
  SELECT 'LOCK TABLE ' || string_agg(oid::regclass::text, ', ' ORDER BY relkind = 'r', relispartition, NOT relhassubclass, oid) || ' IN %[2]s MODE' INTO s
  FROM pg_class WHERE ` + catalog.In("pg_class", "oid", "to_regnamespace('%[1]s')") + ` AND relkind IN ('r', 'p');
  IF s IS NOT NULL THEN EXECUTE s; END IF;`

// Exclusive returns the statement that locks all tables of a schema for readers and writers, and all sequences for nextval, until the transaction ends: its
// ALTER SEQUENCE changes nothing.
func Exclusive(schema string) string {
	return fmt.Sprintf(`
DO $kiloshard$
DECLARE
  s text;
BEGIN`+lockTables+`
  FOR s IN
    SELECT format('ALTER SEQUENCE %%s MAXVALUE %%s', c.oid::regclass, q.seqmax) FROM pg_class c JOIN pg_sequence q ON q.seqrelid = c.oid
    WHERE `+catalog.In("pg_class", "c.oid", "'%[1]s'::regnamespace")+`
  LOOP EXECUTE s; END LOOP;
END
$kiloshard$`, schema, "ACCESS EXCLUSIVE")
}

// Tables returns the statement that locks all tables of a schema in a mode.
func Tables(schema, mode string) string {
	return fmt.Sprintf("DO $kiloshard$ DECLARE s text; BEGIN"+lockTables+"\nEND $kiloshard$; ", schema, mode)
}

// ExcludeVacuum returns statements that take the lock of a vacuum on all tables of a schema, which conflicts with no reader or writer. Postgres cancels an
// autovacuum, which can take hours, only after a statement has waited for it for deadlock_timeout: writers should not wait that long.
func ExcludeVacuum(schema string) string {
	const longer = 10 * time.Second // than deadlock_timeout, whose default is 1 s
	return fmt.Sprintf("SET LOCAL lock_timeout = %d; ", longer.Milliseconds()) + Tables(schema, "SHARE UPDATE EXCLUSIVE")
}

// BelowDeadlock returns a lock_timeout that is nine tenths of a host's deadlock_timeout at most: of a caller and a cutover that wait for each other the
// cutover gives up, before Postgres ends the caller.
func BelowDeadlock(ctx context.Context, conn *pgx.Conn, timeout time.Duration) (time.Duration, error) {
	var limit float64
	err := conn.QueryRow(ctx, `SELECT 0.9 * setting::float8 FROM pg_settings WHERE name = 'deadlock_timeout'`).Scan(&limit)
	return min(timeout, max(time.Millisecond, time.Duration(limit*float64(time.Millisecond)))), err
}

// ErrPauseOver says that a try of a cutover has taken as long as writers may wait.
var ErrPauseOver = errors.New("writers have waited for as long as they may")
