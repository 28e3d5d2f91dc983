package texts

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A statement that usually takes longer than longUsual, or often takes longer than longTail, would hold up those behind
	// it. So may one that has been observed fewer times than familiar.
	longUsual = 3 * time.Millisecond
	longTail  = 20 * time.Millisecond
	familiar  = 3

	// A busy machine delays all statements. So long answers count only if they are more than one in two hundred, and much
	// more frequent than those of other texts.
	tailOnce  = 1_000_000 / 512
	tailLimit = tailOnce * 5 / 2
	tailMore  = 4
)

// times is how long the server took for a text.
type times struct {
	seen  atomic.Int64 // how often it was observed, as far as familiar
	usual atomic.Int64 // time to an answer, in nanoseconds: a low quantile, since the machine may be busy with other things
	tails atomic.Int64 // how often it took longer than longTail, in millionths, the last few hundred counting most
}

func (t *times) observe(took time.Duration) {
	if seen := t.seen.Load(); seen < familiar {
		t.seen.Store(seen + 1)
	}
	usual := t.usual.Load()
	if int64(took) < usual || usual == 0 {
		usual += (int64(took) - usual) / 8
	} else {
		usual += (int64(took) - usual) / 256
	}
	t.usual.Store(usual)
	noteTail(&t.tails, took)
}

func noteTail(tails *atomic.Int64, took time.Duration) {
	now := tails.Load()
	now -= now / 512
	if took > longTail {
		now += tailOnce
	}
	tails.Store(now)
}

// Observe records how long the server took for a text, with the round trip or without. text may be nil.
func (c *Cache) Observe(text *Text, took time.Duration, withTrip bool) {
	if text == nil {
		return
	}
	if withTrip {
		took -= c.ObserveRoundTrip(took)
	}
	text.times.observe(took)
	noteTail(&c.tails, took)
}

// ObserveRoundTrip records an upper bound of a round trip, and returns the shortest one lately.
func (c *Cache) ObserveRoundTrip(took time.Duration) time.Duration {
	return c.trip.observe(took, time.Now())
}

// Slow reports whether a text is to be kept away from others.
func (c *Cache) Slow(text *Text) bool {
	t := &text.times
	if t.seen.Load() < familiar || t.usual.Load() > int64(longUsual) {
		return true
	}
	tails := t.tails.Load()
	return tails > tailLimit && tails > tailMore*c.tails.Load()
}

// roundTripWindow is how long a short round trip counts: the network may have become slower since.
const roundTripWindow = 5 * time.Second

// roundTrip is the shortest round trip of this window and the one before. A mean would measure the load of the machines.
type roundTrip struct {
	shortest atomic.Int64 // in nanoseconds; 0 if unknown

	mu           sync.Mutex
	before, this time.Duration
	until        time.Time // of this window
}

func (w *roundTrip) observe(took time.Duration, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.After(w.until) {
		w.before, w.this, w.until = w.this, took, now.Add(roundTripWindow)
	}
	w.this = min(w.this, took)
	shortest := w.this
	if w.before > 0 {
		shortest = min(shortest, w.before)
	}
	w.shortest.Store(int64(shortest))
	return shortest
}
