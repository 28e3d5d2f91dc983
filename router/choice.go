package router

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// choice chooses the shards of new keys by what it has heard of them. It may be out of date, which costs evenness only:
// the shard itself refuses a key that is too many.
type choice struct {
	shards *shards.Map
	by     string
	counts bool // whether it matters how many keys a shard has

	mu       sync.Mutex
	heard    []int64   // by number: how many keys it surely has; guarded by mu, as are those below
	assumed  []int64   // by number: how many it has once those under way are added
	underway []int64   // by number: how many are being added
	down     []bool    // by index of the host: it did not answer
	counted  time.Time // when all were asked; the zero time before that
}

func newChoice(m *shards.Map) *choice {
	by := m.Strategy().Allocate.By
	counts := by != shards.Weighted
	for n := range m.All().All() {
		counts = counts || m.Capacity(n) != shards.NoLimit
	}
	return &choice{
		shards: m, by: by, counts: counts,
		heard: make([]int64, m.Len()), assumed: make([]int64, m.Len()), underway: make([]int64, m.Len()), down: make([]bool, len(m.Hosts())),
	}
}

// next returns the shard for a new key, and false when all are full, closed or down. The caller then says how it went: by
// added, refused or failed.
func (c *choice) next() (shards.Number, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	host := -1 // of any host
	if c.by == shards.Weighted {
		host = c.host()
	}
	best, ties := shards.Number(-1), 0
	for i := range c.heard {
		n := shards.Number(i)
		if !c.open(n) || host >= 0 && c.shards.HostIndex(n) != host {
			continue
		}
		switch d := c.better(n, best); {
		case d > 0:
			best, ties = n, 1
		case d == 0: // among equals each has the same chance, so that routers do not all go to the first one
			if ties++; rand.IntN(ties) == 0 {
				best = n
			}
		}
	}
	if best < 0 {
		return 0, false
	}
	c.underway[best]++
	c.assumed[best]++
	return best, true
}

// open tells whether a shard can be chosen.
func (c *choice) open(n shards.Number) bool {
	host := c.shards.HostIndex(n)
	return !c.shards.Hosts()[host].Closed && !c.down[host] && c.heard[n] < c.shards.Capacity(n)
}

// better returns more than 0 if shard n is a better choice than best, and 0 if it is as good.
func (c *choice) better(n, best shards.Number) int64 {
	switch {
	case best < 0:
		return 1
	case c.by == shards.LeastUsed:
		return c.assumed[best] - c.assumed[n]
	case c.by == shards.MostLeft:
		return (c.shards.Capacity(n) - c.assumed[n]) - (c.shards.Capacity(best) - c.assumed[best])
	}
	return 0
}

// host returns the index of a host at random, by the weights of those that have an open shard; -1 if none has.
func (c *choice) host() int {
	hosts := c.shards.Hosts()
	weights := make([]int, len(hosts))
	total := 0
	for i := range c.heard {
		n := shards.Number(i)
		if h := c.shards.HostIndex(n); weights[h] == 0 && c.open(n) {
			weights[h] = hosts[h].Weight
			total += weights[h]
		}
	}
	if total == 0 {
		return -1
	}
	left := rand.IntN(total)
	for i, w := range weights {
		if left < w {
			return i
		}
		left -= w
	}
	panic("bug: weights that do not add up")
}

// added says that a key was counted in shard n, which has so many keys now.
func (c *choice) added(n shards.Number, keys int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underway[n]--
	c.heard[n] = max(c.heard[n], keys)
	c.assumed[n] = max(c.assumed[n], keys)
}

// refused says that shard n is full.
func (c *choice) refused(n shards.Number) { c.added(n, c.shards.Capacity(n)) }

// failed says that no key was counted in shard n, and whether its host was not to be reached.
func (c *choice) failed(n shards.Number, down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underway[n]--
	c.assumed[n]--
	if down {
		c.down[c.shards.HostIndex(n)] = true
	}
}

// stale tells whether to ask the shards: what was heard is older than so long.
func (c *choice) stale(maxAge time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counted.IsZero() || time.Since(c.counted) >= maxAge
}

// learn takes over how many keys each shard has, -1 for one that did not answer. Without counts it forgets all that was
// heard, so that hosts and shards are tried again.
func (c *choice) learn(keys []int64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted = at
	clear(c.down)
	if keys == nil {
		clear(c.heard)
		return // assumptions do not matter either
	}
	for i, count := range keys {
		if count < 0 {
			c.down[c.shards.HostIndex(shards.Number(i))] = true
			continue
		}
		c.heard[i], c.assumed[i] = count, count+c.underway[i]
	}
}
