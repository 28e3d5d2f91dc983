// Package wait polls for what a move waits for, and reports what that is.
package wait

import (
	"context"
	"fmt"
	"time"
)

// The longest pauses of [Until]: while writers wait, and at other times.
const (
	Quickly = 2 * time.Millisecond
	Slowly  = 100 * time.Millisecond
)

// Interval is how often a wait reports what it waits for.
const Interval = 5 * time.Second

// Until calls ready until it returns true or an error, with pauses that grow from 1 ms to longest. After limit, 0 for none, it returns an error
// that wraps late. When ctx ends, it returns the cause of that.
func Until(ctx context.Context, limit, longest time.Duration, late error, ready func() (bool, error)) error {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, longest) {
		done, err := ready()
		switch {
		case done || err != nil:
			return err
		case limit > 0 && time.Since(began) > limit:
			return fmt.Errorf("%w: waited %s", late, limit)
		}
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Sleep returns after d, or when ctx ends, with the cause of that.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Limits are the limits of waits for others, such as holders of locks.
type Limits struct {
	Lock   time.Duration                    // for one lock, while others may wait behind it
	Retry  time.Duration                    // for all tries; 0 for no limit
	Report func(format string, args ...any) // reports what is waited for
}

// Exceeded reports whether tries that began at a time have taken too long.
func (l Limits) Exceeded(began time.Time) bool { return l.Retry > 0 && time.Since(began) > l.Retry }
