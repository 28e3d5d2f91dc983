package texts

import (
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

// Observe takes note of how long the server took for a text, without the way to it, which is the shortest time in which
// it answered the first statement of those that were sent together. text may be nil.
func (c *Cache) Observe(text *Text, took time.Duration, first bool) {
	if text == nil {
		return
	}
	if first {
		way := time.Duration(c.way.Load())
		if took < way || way == 0 {
			way = took
		} else {
			way += (took - way) / 256 // it may have become longer
		}
		c.way.Store(int64(way))
		took -= way
	}
	text.times.observe(took)
	noteTail(&c.tails, took)
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
