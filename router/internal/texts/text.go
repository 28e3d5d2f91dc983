package texts

import (
	"sync/atomic"
	"time"
)

// Text is what the router knows about one SQL text. It is safe for concurrent use.
type Text struct {
	Traits
	Summary string // its commands and tables, such as "SELECT photos"

	writes  atomic.Bool  // the server refused it as a read
	long    atomic.Bool  // its answers are too long to buffer
	until   atomic.Int64 // time until which it is sent alone, in Unix nanoseconds
	times   times
	verdict *verdict
	p95     atomic.Int64 // 95th percentile of the time that readers wait, in nanoseconds; 0 if unknown
}

func newText(sql string) *Text {
	return &Text{Traits: traitsOf(sql), Summary: summarize(sql), verdict: &verdict{}}
}

// verdict is what the catalog of a server says about a text: see [Text.Learn]. It is shared by the caches of a host and its replicas.
type verdict struct {
	known, shows, vouched atomic.Bool
}

// Known reports whether the catalog was asked about the text.
func (t *Text) Known() bool { return t.verdict.known.Load() }

// Shows reports whether the text fails wherever its shard is not there, by the relations that it names.
func (t *Text) Shows() bool { return t.verdict.shows.Load() }

// Repeats reports whether the text may run more than once, also at the same time: it only reads, and the catalog vouches for all
// that it calls.
func (t *Text) Repeats() bool { return t.OnlyReads() && t.verdict.vouched.Load() }

// Seen reports whether the server's time for the text is known, so that it is worth more questions.
func (t *Text) Seen() bool { return t.times.seen.Load() >= minSeen }

// LearnFrom records what is known about another text, as which the server gets this one.
func (t *Text) LearnFrom(other *Text) {
	if other.Known() && !t.Known() {
		t.Learn(other.Shows(), other.verdict.vouched.Load())
	}
}

// Learn records what the catalog says: whether the text shows that its shard is gone, and whether there is nothing in what it
// calls that could have an effect.
func (t *Text) Learn(shows, vouched bool) {
	t.verdict.shows.Store(shows)
	t.verdict.vouched.Store(vouched)
	t.verdict.known.Store(true)
}

// Forget has the catalog be asked again.
func (t *Text) Forget() { t.verdict.known.Store(false); t.verdict.vouched.Store(false) }

// OnlyReads reports whether to send the text as a read: by its words, unless the server or its catalog has said otherwise.
func (t *Text) OnlyReads() bool {
	return t.Reads && !t.writes.Load() && (t.verdict.vouched.Load() || !t.verdict.known.Load())
}

// Writes records that the server refused the text as a read.
func (t *Text) Writes() { t.writes.Store(true) }

// LongAnswers records that the answers are too long to buffer. The text is sent alone from then on.
func (t *Text) LongAnswers() { t.long.Store(true) }

// aloneFor is how long a text is sent alone after it broke a group.
const aloneFor = time.Second

// KeepAlone keeps the text out of groups for one second.
func (t *Text) KeepAlone() { t.until.Store(time.Now().Add(aloneFor).UnixNano()) }

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
