package move

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// guardName is the name of the trigger that refuses writes to a table of the target until the source refuses them. Whoever believes that
// the shard is on the target, such as a cron job of the time before an earlier move, would else write rows there that nobody keeps.
const guardName = "kiloshard_arriving"

// guards names the tables of a schema with that trigger.
const guards = `SELECT c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace($1) AND t.tgname = '` + guardName + `' AND t.tgfoid = 'kiloshard.refuse_arriving()'::regprocedure ORDER BY 1`

// guardAll returns the statement that makes the trigger on all tables of the shard but Kiloshard's own, on which nobody may have one.
func (m Move) guardAll() string {
	return fmt.Sprintf(`DO $kiloshard$ DECLARE t regclass; BEGIN
  FOR t IN SELECT oid FROM pg_class WHERE relnamespace = '%s'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'schema_version' AND relname !~ '^kiloshard_' LOOP
    EXECUTE format('CREATE TRIGGER %s BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %%s FOR EACH STATEMENT EXECUTE FUNCTION kiloshard.refuse_arriving(''%s'')', t);
  END LOOP;
END $kiloshard$;
`, m.Schema, guardName, m.ID)
}

// removeGuards drops the triggers, which do nothing any more. Each waits for its table for a moment only, so that nobody waits behind it.
func (j *job) removeGuards(ctx context.Context) error {
	said := time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		tables, err := session.Texts(ctx, j.to, guards, j.Schema)
		if err != nil {
			return false, err
		}
		for _, table := range tables {
			err := session.Run(ctx, j.to, fmt.Sprintf("BEGIN; SET LOCAL lock_timeout = %d; DROP TRIGGER %s ON %s; COMMIT",
				firstLockTimeout.Milliseconds(), guardName, session.Name(j.Schema, table)))
			switch {
			case session.IsLockTimeout(err):
				if time.Since(said) > wait.Interval {
					said = time.Now()
					j.event("waits for table %s, to drop trigger %s", table, guardName)
				}
				return false, nil
			case err != nil:
				return false, err
			}
		}
		return true, nil
	})
}
