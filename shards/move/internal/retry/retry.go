// Package retry decides whether a cutover, or a promotion, is tried again after an error.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/locks"
	"github.com/kiloshard/kiloshard/shards/move/internal/placing"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// Pauses between two tries grow from Shortest to Longest.
const (
	Shortest = 50 * time.Millisecond
	Longest  = 2 * time.Second
)

// May reports whether a try failed because of locks, time, a store that does not answer, or a change of others.
func May(err error) bool {
	return session.IsTransient(err) || placing.IsUnavailable(err) || errors.Is(err, replicate.ErrLate) || errors.Is(err, locks.ErrPauseOver) || errors.Is(err, structure.ErrChanged)
}

// After returns nil, after a pause, if tries of something, such as "cutover", that began some time ago may go on after an error. It calls report before the pause.
func After(ctx context.Context, err error, what string, began time.Time, limits wait.Limits, pause time.Duration, report func(error)) error {
	if !May(err) || ctx.Err() != nil {
		return err
	}
	if limits.Exceeded(began) {
		return fmt.Errorf("no %s within %s: %w", what, limits.Retry, err)
	}
	report(err)
	return wait.Sleep(ctx, pause)
}
