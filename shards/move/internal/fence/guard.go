package fence

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// guardName is the name of the trigger that refuses writes to a table of the target until the source refuses them. A client that expects the shard on
// the target, such as a cron job from before an earlier move, would otherwise write rows there that are lost.
const guardName = "kiloshard_arriving"

// guards names the tables of a schema with that trigger.
const guards = `SELECT c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace($1) AND t.tgname = '` + guardName + `' AND t.tgfoid = 'kiloshard.refuse_arriving()'::regprocedure ORDER BY 1`

// Guard returns the statement that makes the trigger on all tables of the shard but Kiloshard's own, which may have none.
func Guard(m ledger.Move) string {
	return fmt.Sprintf(`DO $kiloshard$ DECLARE t regclass; BEGIN
  FOR t IN SELECT oid FROM pg_class WHERE relnamespace = '%s'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'schema_version' AND relname !~ '^kiloshard_' LOOP
    EXECUTE format('CREATE TRIGGER %s BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %%s FOR EACH STATEMENT EXECUTE FUNCTION kiloshard.refuse_arriving(''%s'')', t);
  END LOOP;
END $kiloshard$;
`, m.Schema, guardName, m.ID)
}

// dropTimeout is the lock_timeout of [Unguard], so that others do not wait behind it for long.
const dropTimeout = 20 * time.Millisecond

// Unguard drops the triggers of a target that serves, which do nothing any more.
func Unguard(ctx context.Context, target *pgx.Conn, limits wait.Limits, m ledger.Move) error {
	reported := time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		tables, err := session.Texts(ctx, target, guards, m.Schema)
		if err != nil {
			return false, err
		}
		for _, table := range tables {
			err := session.Run(ctx, target, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; DROP TRIGGER %s ON %s; COMMIT",
				dropTimeout.Milliseconds(), guardName, session.Name(m.Schema, table)))
			switch {
			case connect.IsLockTimeout(err):
				if time.Since(reported) > wait.Interval {
					reported = time.Now()
					limits.Report("waits for table %s, to drop trigger %s", table, guardName)
				}
				return false, nil
			case err != nil:
				return false, err
			}
		}
		return true, nil
	})
}
