package moves

import (
	"slices"
	"sync"
	"time"
)

// caller makes one call after another. Nothing cancels its calls.
type caller struct {
	mu      sync.Mutex // guards what follows
	took    []float64  // durations of the calls since the last p999, in milliseconds; only of callers of other shards
	longest float64
	calls   int
	failed  int
	err     error // of the first call that failed
	falling int   // IDs that are not greater than the one before
	last    int64 // ID
	written []int // numbers of the rows that were acknowledged
}

// call makes call i, and records the result. The ID is that of the row that it wrote, 0 for none.
func (c *caller) call(i int, keep bool, call func(i int) (id int64, err error)) {
	began := time.Now()
	id, err := call(i)
	ms := float64(time.Since(began)) / float64(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.longest = max(c.longest, ms)
	if keep {
		c.took = append(c.took, ms)
	}
	switch {
	case err != nil:
		if c.failed++; c.err == nil {
			c.err = err
		}
	case id != 0:
		if id <= c.last {
			c.falling++
		}
		c.last = id
		c.written = append(c.written, i)
	}
}

// count returns the number of calls that have ended.
func (c *caller) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// longest returns the longest duration of the calls that ended since the previous longest, in milliseconds.
func longest(callers []*caller) (ms float64) {
	for _, c := range callers {
		c.mu.Lock()
		ms, c.longest = max(ms, c.longest), 0
		c.mu.Unlock()
	}
	return ms
}

// p999 returns the 99.9th percentile of the calls that ended since the previous p999, in milliseconds.
func p999(callers []*caller) float64 {
	var all []float64
	for _, c := range callers {
		c.mu.Lock()
		all = append(all, c.took...)
		c.took = nil
		c.mu.Unlock()
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*999/1000]
}
