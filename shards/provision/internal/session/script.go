package session

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// lockWait limits how long a script waits for a lock. Sessions behind it in the lock's queue wait as long.
const lockWait = 200 * time.Millisecond

// A script that does not get a lock runs up to lockTries times. The pauses grow from firstPause to maxPause.
const (
	lockTries  = 30
	firstPause = 50 * time.Millisecond
	maxPause   = time.Second
)

// Run runs a script of several statements in one transaction and one round trip. It waits a fifth of a second for each
// lock, and retries for half a minute while a lock is not free. After an interrupt, see [fanout.Interrupted], it stops
// retrying.
func Run(ctx context.Context, conn *pgx.Conn, script string) error {
	return retryLocks(ctx, conn, script, "COMMIT")
}

// Rehearse runs a script as [Run] does, and rolls it back.
func Rehearse(ctx context.Context, conn *pgx.Conn, script string) error {
	return retryLocks(ctx, conn, script, "ROLLBACK")
}

func retryLocks(ctx context.Context, conn *pgx.Conn, script, end string) error {
	pause := firstPause
	for try := 1; ; try++ {
		err := runOnce(ctx, conn, script, end)
		if err == nil || try == lockTries || !connect.IsLockTimeout(err) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-fanout.Interrupted(ctx):
			return fmt.Errorf("%w, and not tried again: %w", fanout.ErrInterrupted, err)
		}
		pause = min(2*pause, maxPause)
	}
}

func runOnce(ctx context.Context, conn *pgx.Conn, script, end string) error {
	begin := fmt.Sprintf("BEGIN; SET LOCAL check_function_bodies = off; SET LOCAL lock_timeout = %d;\n", lockWait.Milliseconds())
	_, err := conn.PgConn().Exec(ctx, begin+script+"\n"+end).ReadAll()
	if err != nil && !conn.IsClosed() {
		if _, rollbackErr := conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll(); rollbackErr != nil {
			_ = conn.Close(ctx) // unusable; the server rolls back by itself
		}
	}
	return err
}
