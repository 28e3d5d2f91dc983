package prove_test

import (
	"math"
	"sync"
	"time"
)

// clock is the clock of a server as its clients know it: this machine's, plus an offset that a test may change. This
// machine's may step back, too: virtual ones are set right by their hosts. It is safe for concurrent use.
type clock struct {
	mu      sync.Mutex    // guards what follows
	changes []change      // the first is what holds from the start
	seen    time.Duration // the highest reading that was returned
}

// change is an offset that came into force between two readings of this machine's clock. Times are since the epoch.
type change struct {
	from, until time.Duration
	offset      time.Duration
	highest     time.Duration // the highest reading that the changed clock had shown by then
}

func newClock() *clock { return &clock{changes: []change{{}}} }

// wall returns what this machine's clock said at that time.
func wall(t time.Time) time.Duration { return time.Duration(t.UnixNano() - epoch.UnixNano()) }

// set changes the offset, by apply, which returns when the server's clock follows it.
func (c *clock) set(offset time.Duration, apply func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock() // who asks for readings meanwhile would not know of the change
	old := c.changes[len(c.changes)-1]
	next := change{from: wall(time.Now()), offset: offset}
	if err := apply(); err != nil {
		return err
	}
	next.until = wall(time.Now())
	next.highest = max(old.highest, next.until+max(old.offset, offset))
	c.changes = append(c.changes, next)
	return nil
}

// readings returns the lowest reading that the server's clock can have shown between two times, and the highest that it
// can have shown until the second one, in milliseconds since the epoch.
func (c *clock) readings(began, ended time.Time) (lowest, highest int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, last := wall(began), wall(ended)
	first = min(first, last-ended.Sub(began)) // which goes by a clock that does not step
	low, high := time.Duration(math.MaxInt64), time.Duration(0)
	for i := len(c.changes) - 1; i >= 0; i-- {
		this, until := c.changes[i], last
		if this.from > last {
			continue
		}
		if i+1 < len(c.changes) {
			until = min(until, c.changes[i+1].until)
		}
		if until < first { // of no account for the lowest, and the next one knows the highest
			break
		}
		low = min(low, max(first, this.from)+this.offset)
		high = max(high, until+this.offset, this.highest)
	}
	c.seen = max(c.seen, high)
	return low.Milliseconds(), c.seen.Milliseconds()
}
