package mapstore

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// backoff is the pause between attempts to reach a store: each is twice the last, and partly random, so that clients that
// lost the same store do not all return at once.
type backoff struct{ next time.Duration }

// wait pauses, and returns false if ctx ended.
func (b *backoff) wait(ctx context.Context) bool {
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

// reset makes the next pause short again.
func (b *backoff) reset() { b.next = 0 }
