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

// Retry runs transactions that lose against others again. The zero Retry is ready to use:
//
//	err := router.Retry{}.Tx(ctx, shard, pgx.TxOptions{IsoLevel: pgx.Serializable}, fn)
type Retry struct {
	// Attempts is how many times a transaction is run at most, the first one included. Defaults to 5.
	Attempts int

	// Backoff is the longest pause before the second attempt. Before each further one it is twice as long. How much of
	// it is waited is drawn by chance, at least half. Defaults to 10 ms.
	Backoff time.Duration

	// MaxBackoff is the longest pause before any attempt. Defaults to 1 s.
	MaxBackoff time.Duration
}

// Tx runs fn in a transaction of the shard as [Shard.Tx] does. If that fails with a serialization failure (SQLSTATE
// 40001) or a deadlock (40P01), in fn or at the COMMIT, or because the shard has moved to another host meanwhile, it is rolled
// back and run again after a pause, in a new transaction. Nothing else is tried again.
//
// So fn may run more than once: what it does outside the transaction happens each time, and what it fills must be
// emptied first. It must return the error of a statement that fails: a transaction that goes on after one ends with
// [pgx.ErrTxCommitRollback], which is not tried again.
//
// ctx governs all attempts and the pauses. A connection is held during an attempt and none during a pause.
//
// The error is a [RetryError] if the first attempt failed in that way. Else it comes as from [Shard.Tx]. After
// [ErrOutcomeUnknown] there is no further attempt.
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
			return &RetryError{Attempts: attempt, Err: fmt.Errorf("%w while waiting for the next one: %w", ctx.Err(), err)}
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

// RetryError is what a transaction failed with in the end, and how many attempts were made.
type RetryError struct {
	Attempts int
	Err      error // of the last attempt
}

// Error says how many attempts there were, and what the last one failed with.
func (e *RetryError) Error() string {
	if e.Attempts == 1 {
		return fmt.Sprintf("after 1 attempt: %v", e.Err)
	}
	return fmt.Sprintf("after %d attempts: %v", e.Attempts, e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *RetryError) Unwrap() error { return e.Err }
