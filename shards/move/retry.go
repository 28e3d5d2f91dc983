package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/retry"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// firstLockTimeout is how long the first try waits for a lock: a transaction that has read one table and waits for another, which the mover
// has locked, waits in vain, and so do all others. Each further try waits twice as long, up to [Config.LockTimeout], for all locks.
const firstLockTimeout = 20 * time.Millisecond

// retry calls try, with how long it may wait for each lock, while it fails on locks, limits, or changes of others.
func (j *job) retry(ctx context.Context, try func(ctx context.Context, lockTimeout time.Duration) error) error {
	began := j.firstTry()
	lockTimeout := min(firstLockTimeout, j.cfg.LockTimeout)
	for pause := retry.Shortest; ; pause = min(2*pause, retry.Longest) {
		if err := locks.WaitForOlder(ctx, j.from, j.limits(), began, j.Schema); err != nil {
			return err
		}
		err := try(ctx, lockTimeout)
		lockTimeout = min(2*lockTimeout, j.cfg.LockTimeout)
		if err == nil {
			return nil
		}
		if err := j.pauseAfter(ctx, err, began, pause); err != nil {
			return err
		}
		if err := j.catchUp(ctx); err != nil {
			return err
		}
	}
}

// retryLocked calls try while it fails on locks, or changes of others.
func (j *job) retryLocked(ctx context.Context, try func() error) error {
	began := j.firstTry()
	for {
		if err := locks.WaitForOlder(ctx, j.from, j.limits(), began, j.Schema); err != nil {
			return err
		}
		err := try()
		if err == nil {
			return nil
		}
		if err := j.pauseAfter(ctx, err, began, retry.Longest/10); err != nil {
			return err
		}
	}
}

// firstTry returns when the first try of a cutover began, also if a fence has come down since.
func (j *job) firstTry() time.Time {
	if j.tried.IsZero() {
		j.tried = time.Now()
	}
	return j.tried
}

// pauseAfter returns nil, after a pause, if tries that began some time ago may go on after an error.
func (j *job) pauseAfter(ctx context.Context, err error, began time.Time, pause time.Duration) error {
	return retry.After(ctx, err, "cutover", began, j.limits(), pause, func(err error) { j.eventf(progress.Retrying, "tries again: %v", err) })
}

// cutOnce takes locks that hold up writers of the shard, or readers as well, while fn runs: the target then has all that was written. After an
// error nothing has changed.
func (j *job) cutOnce(ctx context.Context, lockTimeout time.Duration, statements string, fn func(context.Context, pgx.Tx) error) error {
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
	if err := session.Run(ctx, j.cut, locks.ExcludeVacuum(j.Schema)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, j.cfg.LockTimeout+j.cfg.MaxPause)
	defer cancel()
	began, err := j.lock(limited, tx, lockTimeout, statements, fn)
	unsent := err != nil
	if err == nil {
		j.hold.Take()
		err = tx.Commit(limited)
		unsent = pgconn.SafeToRetry(err)
	}
	if unsent {
		j.hold.Release()
	}
	// On a busy machine the server's limit may be reported before the context's own.
	end, _ := limited.Deadline()
	switch {
	case unsent && !time.Now().Before(end) && ctx.Err() == nil: // nothing is committed, nor about to be
		return fmt.Errorf("%w: %w", locks.ErrPauseOver, err)
	case err != nil:
		return err
	}
	j.released(time.Since(began).Round(100 * time.Microsecond))
	return nil
}

// lock takes locks, waits for the target, and runs fn. It returns when it had the locks.
func (j *job) lock(ctx context.Context, tx pgx.Tx, lockTimeout time.Duration, statements string, fn func(context.Context, pgx.Tx) error) (began time.Time, err error) {
	// A mover that hangs loses its session, and with it the locks.
	settings := fmt.Sprintf(`SELECT set_config('lock_timeout', '%d', true), set_config('statement_timeout', '%d', true), set_config('idle_in_transaction_session_timeout', '%d', true)`,
		lockTimeout.Milliseconds(), j.cfg.LockTimeout.Milliseconds(), (j.cfg.LockTimeout + j.cfg.MaxPause).Milliseconds())
	if _, err := tx.Exec(ctx, settings); err != nil {
		return began, err
	}
	if _, err := tx.Exec(ctx, statements); err != nil {
		return began, err
	}
	began = time.Now()
	j.event(progress.Locked)
	if _, err := tx.Exec(ctx, fmt.Sprintf(`SELECT set_config('statement_timeout', '%d', true)`, j.cfg.MaxPause.Milliseconds())); err != nil {
		return began, err
	}
	if err := j.mark(ctx, j.cfg.MaxPause); err != nil {
		return began, err
	}
	j.event(progress.Marked)
	return began, j.orChanged(ctx, fn(ctx, tx))
}

// catchUp returns when a marker reaches the target within [Config.MaxLag].
func (j *job) catchUp(ctx context.Context) error {
	if j.back == nil { // a shard with unlogged tables has no way back
		if err := structure.DropUnloggedKeys(ctx, j.to, j.Move, j.limits()); err != nil {
			return err
		}
	}
	for {
		began := time.Now()
		if err := j.mark(ctx, 0); err != nil {
			return err
		}
		if lag := time.Since(began); lag > j.cfg.MaxLag {
			j.report(progress.Event{Kind: progress.Behind, What: fmt.Sprintf("behind by %s", lag.Round(time.Millisecond)), Lag: lag})
			continue
		}
		j.event(progress.CaughtUp)
		return nil
	}
}

// mark returns when the target has all that was committed on the source before. The error wraps [replicate.ErrLate] after limit, 0 for none.
func (j *job) mark(ctx context.Context, limit time.Duration) error {
	if j.back != nil {
		return j.drain(ctx)
	}
	return j.stream().Mark(ctx, limit)
}
