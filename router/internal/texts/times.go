package texts

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A statement that usually takes as long as longUsual, or as long as longTail more often than now and then, would hold
	// up those behind it. So may one that is not familiar.
	longUsual = 3 * time.Millisecond
	longTail  = 20 * time.Millisecond
	familiar  = 3

	// That a machine is short of time happens to all statements: long answers count that come more often than one in two
	// hundred, and much more often than with the others.
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

// Observe takes note of how long the server took for a text, with the way to it and back or without. text may be nil.
func (c *Cache) Observe(text *Text, took time.Duration, withWay bool) {
	if text == nil {
		return
	}
	if withWay {
		took -= c.ObserveWay(took)
	}
	text.times.observe(took)
	noteTail(&c.tails, took)
}

// ObserveWay takes note of how long the way to the server and back was at most, and returns how long it is.
func (c *Cache) ObserveWay(took time.Duration) time.Duration { return c.way.observe(took, time.Now()) }

// Slow reports whether a text is to be kept away from others.
func (c *Cache) Slow(text *Text) bool {
	t := &text.times
	if t.seen.Load() < familiar || t.usual.Load() > int64(longUsual) {
		return true
	}
	tails := t.tails.Load()
	return tails > tailLimit && tails > tailMore*c.tails.Load()
}

// wayWindow is for how long a short way counts: it may have become longer.
const wayWindow = 5 * time.Second

// way is how long the way to the server and back is: the shortest of this window and the one before. A mean would be that of
// the machines' load.
type way struct {
	shortest atomic.Int64 // in nanoseconds; 0 if unknown

	mu           sync.Mutex
	before, this time.Duration
	until        time.Time // of this window
}

func (w *way) observe(took time.Duration, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.After(w.until) {
		w.before, w.this, w.until = w.this, took, now.Add(wayWindow)
	}
	w.this = min(w.this, took)
	shortest := w.this
	if w.before > 0 {
		shortest = min(shortest, w.before)
	}
	w.shortest.Store(int64(shortest))
	return shortest
}
