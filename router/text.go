package router

import (
	"sync"
	"sync/atomic"
	"time"
)

// text is what a router knows of one SQL text: what its words tell, and how long the server took for it so far.
type text struct {
	traits
	summary string
	seen    atomic.Int64 // how often it was observed, as far as familiar
	usual   atomic.Int64 // time to an answer, in nanoseconds: a low quantile, since the machine may be busy with other things
	p95     atomic.Int64 // within which readers were answered 95 times of 100, in nanoseconds; 0 if unknown
	tails   atomic.Int64 // how often it took longer than longTail, in millionths, the last few hundred counting most
}

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

// observe takes note of how long the server took for a statement, without what the way to it takes: the shortest time in
// which it has answered the first statement of those sent together.
func (h *host) observe(t *text, took time.Duration, first bool) {
	if t == nil {
		return
	}
	if first {
		way := time.Duration(h.way.Load())
		if took < way || way == 0 {
			way = took
		} else {
			way += (took - way) / 256 // it may have become longer
		}
		h.way.Store(int64(way))
		took -= way
	}
	t.observe(took)
	noteTail(&h.texts.tails, took)
}

func (t *text) observe(took time.Duration) {
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

// slow tells whether a statement is to be kept away from others.
func (ts *texts) slow(t *text) bool {
	if t.seen.Load() < familiar || t.usual.Load() > int64(longUsual) {
		return true
	}
	tails := t.tails.Load()
	return tails > tailLimit && tails > tailMore*ts.tails.Load()
}

// mostTexts is past how many texts all are forgotten: a program that makes its SQL up as it goes along has no end of them.
const mostTexts = 4096

// texts are the SQL texts that a host's shards were given. They are safe for concurrent use.
type texts struct {
	known atomic.Pointer[sync.Map] // of *text by string
	tails atomic.Int64             // of all together, as of each
	count atomic.Int64
}

func newTexts() *texts {
	t := &texts{}
	t.known.Store(&sync.Map{})
	return t
}

func (ts *texts) of(sql string) *text {
	known := ts.known.Load()
	if found, ok := known.Load(sql); ok {
		return found.(*text)
	}
	if ts.count.Add(1) > mostTexts {
		known = &sync.Map{}
		ts.known.Store(known)
		ts.count.Store(1)
	}
	found, _ := known.LoadOrStore(sql, &text{traits: traitsOf(sql), summary: summarize(sql)})
	return found.(*text)
}
