package backend

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Backoff is the pause between attempts to reach a store. Each pause is twice the last, and partly random, so that
// clients that lost the same store do not all return at once.
type Backoff struct{ next time.Duration }

// Wait pauses. It returns false if ctx ended.
func (b *Backoff) Wait(ctx context.Context) bool {
	pause := max(b.next, firstPause)
	b.next = min(2*pause, lastPause)
	timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Reset makes the next pause short again.
func (b *Backoff) Reset() { b.next = 0 }
