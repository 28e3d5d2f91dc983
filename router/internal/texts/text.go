package texts

import (
	"sync/atomic"
	"time"
)

// Text is what the router has learned about one SQL text. It is safe for concurrent use.
type Text struct {
	Traits
	Summary string // what it does to which tables, such as "SELECT photos"

	writes atomic.Bool  // the server refused it as a read
	long   atomic.Bool  // its answers are too long to be kept
	until  atomic.Int64 // when it may be sent with others again, in Unix nanoseconds
	times  times
	p95    atomic.Int64 // of the time that readers wait, in nanoseconds; 0 if unknown
}

func newText(sql string) *Text { return &Text{Traits: traitsOf(sql), Summary: summarize(sql)} }

// OnlyReads reports whether the text is to be sent as a read.
func (t *Text) OnlyReads() bool { return t.Reads && !t.writes.Load() }

// Writes records that the server refused the text as a read.
func (t *Text) Writes() { t.writes.Store(true) }

// LongAnswers records that its answers are too long to be kept, so that it is sent alone from now on.
func (t *Text) LongAnswers() { t.long.Store(true) }

// aloneFor is how long a text is sent alone after it has broken a group.
const aloneFor = time.Second

// KeepAlone keeps the text out of groups for a second.
func (t *Text) KeepAlone() { t.until.Store(time.Now().Add(aloneFor).UnixNano()) }

// Alone reports whether the text must be sent alone.
func (t *Text) Alone() bool {
	until := t.until.Load()
	return t.long.Load() || until != 0 && time.Now().UnixNano() < until
}

// Usual returns how long the server usually takes for the text, 0 if unknown.
func (t *Text) Usual() time.Duration { return time.Duration(t.times.usual.Load()) }

// ReaderWaited records how long a reader waited for an answer, so that over time one in twenty waits longer than
// [Text.P95].
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
