package texts

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A statement that usually takes longer than longUsual, or often takes longer than longTail, would delay the statements
	// behind it. So may a statement that was observed fewer than minSeen times.
	longUsual = 3 * time.Millisecond
	longTail  = 20 * time.Millisecond
	minSeen   = 3

	// A busy machine delays all statements. So slow answers count only if they are more than one in two hundred, and
	// tailRatio times as frequent as those of all texts.
	tailStep  = 1_000_000 / 512
	tailLimit = tailStep * 5 / 2
	tailRatio = 4
)

// times are statistics of how long the server took for a text.
type times struct {
	seen  atomic.Int64 // number of observations, at most minSeen
	usual atomic.Int64 // a low quantile of the time, in nanoseconds: a busy machine delays some answers
	tails atomic.Int64 // share of answers slower than longTail, in millionths; the last few hundred count most
}

func (t *times) observe(took time.Duration) {
	if seen := t.seen.Load(); seen < minSeen {
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
		now += tailStep
	}
	tails.Store(now)
}

// Observe records how long the server took for a text. withTrip means that took includes the round trip. text may be nil.
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

// ObserveRoundTrip records an upper bound of the time of a round trip, and returns the shortest recent one.
func (c *Cache) ObserveRoundTrip(took time.Duration) time.Duration {
	return c.trip.observe(took, time.Now())
}

// Slow reports whether a text must not share a connection with others: it is slow, or not known well enough.
func (c *Cache) Slow(text *Text) bool {
	t := &text.times
	if !text.Seen() || t.usual.Load() > int64(longUsual) {
		return true
	}
	tails := t.tails.Load()
	return tails > tailLimit && tails > tailRatio*c.tails.Load()
}

// roundTripWindow is how long a round trip counts: the network may become slower.
const roundTripWindow = 5 * time.Second

// roundTrip is the shortest round trip of the present window and the one before. A mean would also measure the load of the
// machines.
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
