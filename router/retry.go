package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
)

const (
	defaultAttempts   = 5
	defaultBackoff    = 10 * time.Millisecond
	defaultMaxBackoff = time.Second
)

// Retry retries transactions that fail because of others. The zero Retry is ready to use:
//
//	err := router.Retry{}.Tx(ctx, shard, pgx.TxOptions{IsoLevel: pgx.Serializable}, fn)
type Retry struct {
	// Attempts is the greatest number of attempts, including the first. Defaults to 5.
	Attempts int

	// Backoff is the longest pause before the second attempt. It doubles before each further attempt. The pause is random
	// between half of it and all of it. Defaults to 10 ms.
	Backoff time.Duration

	// MaxBackoff is the longest pause before any attempt. Defaults to 1 s.
	MaxBackoff time.Duration
}

// Tx runs fn in a transaction of the shard as [Shard.Tx] does. If that fails with a serialization failure (SQLSTATE
// 40001) or a deadlock (40P01), in fn or at the COMMIT, or because the shard has moved to another host, Tx rolls back, waits
// and runs fn again in a new transaction. It retries nothing else.
//
// So fn may run more than once: what it does outside the transaction happens each time, and it must first empty what it
// fills. It must return the error of a statement that fails: a transaction that continues after one ends with
// [pgx.ErrTxCommitRollback], which Tx does not retry.
//
// ctx governs all attempts and the pauses. Tx holds a connection during an attempt, and none during a pause.
//
// If the first attempt failed in such a way and no later one succeeded, the error is a [RetryError]. Otherwise it is the
// error of [Shard.Tx]. Tx does not retry after [ErrOutcomeUnknown].
func (r Retry) Tx(ctx context.Context, s Shard, opts pgx.TxOptions, fn func(pgx.Tx) error) error {
	r = r.withDefaults()
	pause := min(r.Backoff, r.MaxBackoff)
	for attempt := 1; ; attempt++ {
		err := s.Tx(tracers.WithAttempt(ctx, attempt), opts, fn)
		again, h := failure.Conflict(err) || errors.Is(err, ErrMoved), s.placement.now().host
		switch {
		case err == nil:
			return nil
		case !again && attempt == 1:
			return err
		case !again || attempt >= r.Attempts:
			h.exhausted.Add(1)
			h.Log.Warn("transaction failed for good", slog.String("host", h.Name), slog.Int("shard", int(s.Number())),
				slog.Int("attempts", attempt), slog.String("sqlstate", failure.SQLState(err)))
			return &RetryError{Attempts: attempt, Err: err}
		}
		h.retried.Add(1)
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return &RetryError{Attempts: attempt, Err: fmt.Errorf("%w while waiting for the next attempt: %w", ctx.Err(), err)}
		}
		pause = min(2*pause, r.MaxBackoff)
	}
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = defaultAttempts
	}
	if r.Backoff <= 0 {
		r.Backoff = defaultBackoff
	}
	if r.MaxBackoff <= 0 {
		r.MaxBackoff = defaultMaxBackoff
	}
	return r
}

// RetryError is the last error of a transaction and the number of attempts.
type RetryError struct {
	Attempts int
	Err      error // of the last attempt
}

// Error returns the number of attempts and the last error.
func (e *RetryError) Error() string {
	if e.Attempts == 1 {
		return fmt.Sprintf("after 1 attempt: %v", e.Err)
	}
	return fmt.Sprintf("after %d attempts: %v", e.Attempts, e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *RetryError) Unwrap() error { return e.Err }
