package texts

import (
	"sync/atomic"
	"time"
)

// Text is what the router knows about one SQL text. It is safe for concurrent use.
type Text struct {
	Traits
	Summary string // its commands and tables, such as "SELECT photos"

	writes atomic.Bool  // the server refused it as a read
	long   atomic.Bool  // its answers are too long to buffer
	keeps  atomic.Bool  // its statement was seen to leave the path as it was
	until  atomic.Int64 // time until which it is sent alone, in Unix nanoseconds
	times  times
	p95    atomic.Int64 // 95th percentile of the time that readers wait, in nanoseconds; 0 if unknown
}

func newText(sql string) *Text { return &Text{Traits: traitsOf(sql), Summary: summarize(sql)} }

// OnlyReads reports whether to send the text as a read.
func (t *Text) OnlyReads() bool { return t.Reads && !t.writes.Load() }

// Writes records that the server refused the text as a read.
func (t *Text) Writes() { t.writes.Store(true) }

// LongAnswers records that the answers are too long to buffer. The text is sent alone from then on.
func (t *Text) LongAnswers() { t.long.Store(true) }

// aloneFor is how long a text is sent alone after it broke a group.
const aloneFor = time.Second

// KeepAlone keeps the text out of groups for one second.
func (t *Text) KeepAlone() { t.until.Store(time.Now().Add(aloneFor).UnixNano()) }

// KeepsPath reports whether the text was seen to leave the path as it was, and not since in a group whose path moved.
func (t *Text) KeepsPath() bool { return t.keeps.Load() }

// KeptPath records that the text left the path as it was.
func (t *Text) KeptPath() {
	if !t.keeps.Load() {
		t.keeps.Store(true)
	}
}

// MovedPath records that the text was in a group whose path moved.
func (t *Text) MovedPath() {
	t.keeps.Store(false)
	t.KeepAlone()
}

// Alone reports whether the text must be sent alone.
func (t *Text) Alone() bool {
	until := t.until.Load()
	return t.long.Load() || until != 0 && time.Now().UnixNano() < until
}

// Usual returns how long the server usually takes for the text, 0 if unknown.
func (t *Text) Usual() time.Duration { return time.Duration(t.times.usual.Load()) }

// ReaderWaited records how long a reader waited for an answer. It adjusts [Text.P95] so that one in twenty readers waits
// longer.
func (t *Text) ReaderWaited(took time.Duration) {
	before := t.p95.Load()
	p95 := before
	switch {
	case p95 == 0:
		p95 = int64(took)
	case int64(took) > p95:
		p95 += p95 * 95 / 1600
	default:
		p95 -= p95 * 5 / 1600
	}
	t.p95.CompareAndSwap(before, max(p95, int64(10*time.Microsecond)))
}

// P95 returns the 95th percentile of the time that readers wait, 0 if unknown.
func (t *Text) P95() time.Duration { return time.Duration(t.p95.Load()) }
