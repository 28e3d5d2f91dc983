package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// cutoverPause is the longest pause between two tries of a cutover.
const cutoverPause = 2 * time.Second

// firstLockTimeout is how long the first try waits for a lock: a transaction that has read one table and waits for another, which the mover
// has locked, waits in vain, and so do all others. Each further try waits twice as long, up to [Config.LockTimeout], for all locks.
const firstLockTimeout = 20 * time.Millisecond

// cutover tries until the shard is fenced. Each try keeps writers waiting for the lock timeout at most until it has all
// locks, and for the longest pause at most in all; one that comes to nothing leaves no trace.
func (j *job) cutover(ctx context.Context) error {
	if err := j.catchUp(ctx); err != nil { // after a resume
		return err
	}
	if err := j.prepareFence(ctx); err != nil {
		return err
	}
	if err := j.openWayBack(ctx); err != nil {
		return err
	}
	if err := j.prepareTarget(ctx); err != nil {
		return err
	}
	if err := j.readApart(ctx); err != nil {
		return err
	}
	if err := j.noteCutover(ctx, j.to); err != nil {
		return err
	}
	for doubts := 0; ; doubts++ {
		err := j.retry(ctx, func(lockTimeout time.Duration) error {
			if err := j.unlessAsCompared(ctx, j.prepareTarget); err != nil {
				return err
			}
			if err := j.readMap(ctx); err != nil {
				return err
			}
			if err := j.makeUnloggedKeys(ctx); err != nil {
				return err
			}
			if err := j.takeTurn(ctx); err != nil {
				return err
			}
			err := j.whileOpen(ctx, func() error { return j.cutOnce(ctx, lockTimeout, lockOut(j.Schema), j.fenceIn) })
			if err != nil {
				j.endTurn(ctx)
			}
			return err
		})
		if last := (*lastPassError)(nil); !errors.As(err, &last) || doubts == maxPasses {
			return err
		}
		if err := j.verifyBefore(ctx); err != nil {
			return err
		}
	}
}

// prepareTarget compares what can be compared while nobody waits, and has the target look at its tables and fill its materialised views.
func (j *job) prepareTarget(ctx context.Context) error {
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return j.verifyBefore(both) })
	group.Go(func() error {
		j.analyze(both)
		return j.refresh(both, false)
	})
	return group.Wait()
}

// retry calls try, with how long it may wait for each lock, until it no longer fails for the sake of writers who are not to wait.
func (j *job) retry(ctx context.Context, try func(lockTimeout time.Duration) error) error {
	began := j.tries()
	lockTimeout := min(firstLockTimeout, j.cfg.LockTimeout)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, cutoverPause) {
		if err := j.untilQuiet(ctx, j.from, began, j.Schema); err != nil {
			return err
		}
		err := try(lockTimeout)
		lockTimeout = min(2*lockTimeout, j.cfg.LockTimeout)
		if err == nil {
			return nil
		}
		if err := j.tryAgain(ctx, "cutover", began, pause, err); err != nil {
			return err
		}
		if err := j.catchUp(ctx); err != nil {
			return err
		}
	}
}

// tries returns when the first try of a cutover began, also if a fence has come down since.
func (j *job) tries() time.Time {
	if j.tried.IsZero() {
		j.tried = time.Now()
	}
	return j.tried
}

// outOfPatience reports whether what began some time ago has taken too long.
func (j *job) outOfPatience(began time.Time) bool {
	return j.cfg.Patience > 0 && time.Since(began) > j.cfg.Patience
}

// tryAgain returns nil, after a pause, if what began some time ago is to be tried again after an error.
func (j *job) tryAgain(ctx context.Context, what string, began time.Time, pause time.Duration, err error) error {
	if !mayTryAgain(err) || ctx.Err() != nil {
		return err
	}
	if j.outOfPatience(began) {
		return fmt.Errorf("no %s within %s: %w", what, j.cfg.Patience, err)
	}
	j.event("tries again: %v", err)
	return wait.Sleep(ctx, pause)
}

// mayTryAgain reports whether a cutover failed because of locks, time, a store that does not answer, or what somebody did meanwhile.
func mayTryAgain(err error) bool {
	switch session.Code(err) {
	case "55P03", "40P01", "57014", "25P03": // lock not available, deadlock, statement timeout, idle in a transaction
		return true
	case "XX000": // somebody has granted something at the same moment
		return strings.Contains(err.Error(), "tuple concurrently updated")
	}
	var store *storeError
	return errors.Is(err, errMarkerLate) || errors.Is(err, errPauseOver) || errors.Is(err, errMeanwhile) || errors.As(err, &store) && !mapstore.IsRefusal(err)
}

// errPauseOver says that a try of a cutover has taken as long as writers may wait.
var errPauseOver = errors.New("writers have waited for as long as they may")

// untilQuiet returns when no transaction on a host that is older than the lock timeout holds a lock in the shard, or makes something there: one
// that waits for such a transaction would have others wait behind it in vain.
func (j *job) untilQuiet(ctx context.Context, conn *pgx.Conn, began time.Time, schemas ...string) error {
	told := time.Time{}
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		const query = `
			SELECT DISTINCT CASE WHEN l.pid IS NULL THEN format('prepared transaction %L', p.gid) ELSE format('a transaction of process %s, %s', a.pid, a.state) END
			FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_stat_activity a ON a.pid = l.pid AND a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()
			LEFT JOIN pg_locks own ON l.pid IS NULL AND own.pid IS NULL AND own.locktype = 'transactionid' AND own.virtualtransaction = l.virtualtransaction
			LEFT JOIN pg_prepared_xacts p ON p.transaction = own.transactionid
			WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.granted
				AND coalesce(c.relnamespace, CASE l.classid WHEN 'pg_namespace'::regclass THEN l.objid END) IN (SELECT to_regnamespace(s) FROM unnest($1::text[]) s)
				AND coalesce(p.prepared, a.xact_start) < clock_timestamp() - make_interval(secs => $2)`
		blockers, err := session.Texts(ctx, conn, query, schemas, j.cfg.LockTimeout.Seconds())
		if err == nil && len(blockers) > 0 && time.Since(told) > wait.Interval {
			told = time.Now()
			j.event("waits for %s", strings.Join(blockers, "; "))
		}
		if err == nil && len(blockers) > 0 && j.outOfPatience(began) {
			return false, fmt.Errorf("no cutover within %s: %s holds a lock in the shard", j.cfg.Patience, strings.Join(blockers, "; "))
		}
		return len(blockers) == 0, err
	})
}

// lockTables takes the locks of all tables in a mode. A statement that names a partitioned table has its lock before it waits for those of
// partitions, and then writes there whatever they are called by now: such tables are locked, too, and parents before their children, as statements do.
var lockTables = `
  SELECT 'LOCK TABLE ' || string_agg(oid::regclass::text, ', ' ORDER BY relkind = 'r', relispartition, NOT relhassubclass, oid) || ' IN %[2]s MODE' INTO s
  FROM pg_class WHERE ` + checks.In("pg_class", "oid", "to_regnamespace('%[1]s')") + ` AND relkind IN ('r', 'p');
  IF s IS NOT NULL THEN EXECUTE s; END IF;`

// lockOut keeps everybody out of all tables, and nextval of all sequences: ALTER SEQUENCE changes nothing here.
func lockOut(schema string) string {
	return fmt.Sprintf(`
DO $kiloshard$
DECLARE
  s text;
BEGIN`+lockTables+`
  FOR s IN
    SELECT format('ALTER SEQUENCE %%s MAXVALUE %%s', c.oid::regclass, q.seqmax) FROM pg_class c JOIN pg_sequence q ON q.seqrelid = c.oid
    WHERE `+checks.In("pg_class", "c.oid", "'%[1]s'::regnamespace")+`
  LOOP EXECUTE s; END LOOP;
END
$kiloshard$`, schema, "ACCESS EXCLUSIVE")
}

// lockAll takes the locks of all tables in a mode.
func lockAll(schema, mode string) string {
	return fmt.Sprintf("DO $kiloshard$ DECLARE s text; BEGIN"+lockTables+"\nEND $kiloshard$; ", schema, mode)
}

// keepOutVacuum takes the lock of a vacuum on all tables, which is in nobody's way who reads or writes. Postgres cancels an autovacuum, which
// can take hours, once somebody has waited for it for deadlock_timeout: writers are not to.
func keepOutVacuum(schema string) string {
	const longer = 10 * time.Second // than deadlock_timeout, whose default is 1 s
	return fmt.Sprintf("SET LOCAL lock_timeout = %d; ", longer.Milliseconds()) + lockAll(schema, "SHARE UPDATE EXCLUSIVE")
}

// cutOnce has locks hold writers of the shard up, or readers as well, while fn runs: the target then has all that was written. With an
// error nothing has changed.
func (j *job) cutOnce(ctx context.Context, lockTimeout time.Duration, locks string, fn func(context.Context, pgx.Tx) error) error {
	if j.cut == nil || j.cut.IsClosed() {
		var err error
		if j.cut, err = session.Open(ctx, j.src); err != nil {
			return err
		}
	}
	tx, err := session.Begin(ctx, j.cut)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := session.Run(ctx, j.cut, keepOutVacuum(j.Schema)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, j.cfg.LockTimeout+j.cfg.MaxPause)
	defer cancel()
	began, err := j.holdUp(limited, tx, lockTimeout, locks, fn)
	unsent := err != nil
	if err == nil {
		j.hold()
		err = tx.Commit(limited)
		unsent = pgconn.SafeToRetry(err)
	}
	if unsent {
		j.letGo()
	}
	// On a busy machine the server's limit may be heard of before the context's own.
	end, _ := limited.Deadline()
	switch {
	case unsent && !time.Now().Before(end) && ctx.Err() == nil: // nothing is committed, nor about to be
		return fmt.Errorf("%w: %w", errPauseOver, err)
	case err != nil:
		return err
	}
	j.event("released after %s", time.Since(began).Round(100*time.Microsecond))
	return nil
}

// holdUp takes locks, waits for the target, and runs fn. It returns since when the locks are held.
func (j *job) holdUp(ctx context.Context, tx pgx.Tx, lockTimeout time.Duration, locks string, fn func(context.Context, pgx.Tx) error) (began time.Time, err error) {
	// A mover that hangs loses its session, and with it the locks.
	settings := fmt.Sprintf(`SELECT set_config('lock_timeout', '%d', true), set_config('statement_timeout', '%d', true), set_config('idle_in_transaction_session_timeout', '%d', true)`,
		lockTimeout.Milliseconds(), j.cfg.LockTimeout.Milliseconds(), (j.cfg.LockTimeout + j.cfg.MaxPause).Milliseconds())
	if _, err := tx.Exec(ctx, settings); err != nil {
		return began, err
	}
	if _, err := tx.Exec(ctx, locks); err != nil {
		return began, err
	}
	began = time.Now()
	j.event("locked")
	if _, err := tx.Exec(ctx, fmt.Sprintf(`SELECT set_config('statement_timeout', '%d', true)`, j.cfg.MaxPause.Milliseconds())); err != nil {
		return began, err
	}
	if err := j.mark(ctx, j.cfg.MaxPause); err != nil {
		return began, err
	}
	j.event("marked")
	return began, j.orMeanwhile(ctx, fn(ctx, tx))
}

// fenceIn is the end of a cutover: it carries over what is not replicated, asks the catalogs meanwhile, and fences the source.
func (j *job) fenceIn(ctx context.Context, tx pgx.Tx) error {
	var group errgroup.Group
	group.Go(func() error { return j.isAsCompared(ctx) })
	sequences, err := j.carryRest(ctx, tx)
	if changed := group.Wait(); changed != nil {
		return changed
	}
	if err != nil {
		return err
	}
	return j.erect(ctx, tx, sequences)
}

// carryRest copies what is not replicated, compares what is to be compared, and carries the sequences over, which it returns.
func (j *job) carryRest(ctx context.Context, tx pgx.Tx) ([]sequence, error) {
	if err := j.copyUnlogged(ctx, tx); err != nil {
		return nil, err
	}
	if err := j.copyLarge(ctx, tx); err != nil {
		return nil, fmt.Errorf("large objects: %w", err)
	}
	if err := j.verifyUnderFence(ctx, tx); err != nil {
		return nil, err
	}
	sequences, err := sequencesOf(ctx, tx, j.Schema)
	if err != nil {
		return nil, err
	}
	carried := sequences
	if j.back != nil { // [job.reopen] carries them, once nobody can draw from two of them
		carried = nil
	}
	if err := j.carry(ctx, carried); err != nil {
		return nil, fmt.Errorf("sequences on %s: %w", j.Target, err)
	}
	j.event("carried")
	return sequences, nil
}
