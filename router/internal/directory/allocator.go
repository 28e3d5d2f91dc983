package directory

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// allocator chooses shards for new keys by the key counts of the shards. Stale counts only make the distribution less even:
// the shard itself refuses a key beyond its capacity.
type allocator struct {
	shards *shards.Map
	by     string
	counts bool // whether the choice depends on how many keys a shard has

	mu       sync.Mutex
	known    []int64   // by number: its keys at the last count; mu guards this and all fields below
	expected []int64   // by number: known plus underway
	underway []int64   // by number: the keys being added
	down     []bool    // by index of the host: it did not answer
	counted  time.Time // time of the last count; zero before the first
}

func newAllocator(m *shards.Map) *allocator {
	by := m.Strategy().Allocate.By
	counts := by != shards.Weighted
	for n := range m.All().All() {
		counts = counts || m.Capacity(n) != shards.NoLimit
	}
	return &allocator{
		shards: m, by: by, counts: counts,
		known: make([]int64, m.Len()), expected: make([]int64, m.Len()), underway: make([]int64, m.Len()), down: make([]bool, len(m.Hosts())),
	}
}

// next returns a shard for a new key, and false if all are full, closed or down. After true the caller must report the
// outcome with added, refused or failed.
func (a *allocator) next() (shards.Number, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	host := -1 // of any host
	if a.by == shards.Weighted {
		host = a.host()
	}
	best, ties := shards.Number(-1), 0
	for i := range a.known {
		n := shards.Number(i)
		if !a.open(n) || host >= 0 && a.shards.HostIndex(n) != host {
			continue
		}
		switch d := a.better(n, best); {
		case d > 0:
			best, ties = n, 1
		case d == 0: // pick one of equal shards at random, so that routers do not all take the first one
			if ties++; rand.IntN(ties) == 0 {
				best = n
			}
		}
	}
	if best < 0 {
		return 0, false
	}
	a.underway[best]++
	a.expected[best]++
	return best, true
}

// open reports whether a shard can be chosen.
func (a *allocator) open(n shards.Number) bool {
	host := a.shards.HostIndex(n)
	return !a.shards.Hosts()[host].Closed && !a.down[host] && a.known[n] < a.shards.Capacity(n)
}

// better returns a positive number if shard n is a better choice than best, and 0 if they are equal.
func (a *allocator) better(n, best shards.Number) int64 {
	switch {
	case best < 0:
		return 1
	case a.by == shards.LeastUsed:
		return a.expected[best] - a.expected[n]
	case a.by == shards.MostLeft:
		return (a.shards.Capacity(n) - a.expected[n]) - (a.shards.Capacity(best) - a.expected[best])
	}
	return 0
}

// host returns the index of a random host that has an open shard, with a probability in proportion to its weight; -1 if no
// host has one.
func (a *allocator) host() int {
	hosts := a.shards.Hosts()
	weights := make([]int, len(hosts))
	total := 0
	for i := range a.known {
		n := shards.Number(i)
		if h := a.shards.HostIndex(n); weights[h] == 0 && a.open(n) {
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

// added records that shard n counted the key, and that it has this many keys now.
func (a *allocator) added(n shards.Number, keys int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underway[n]--
	a.known[n] = max(a.known[n], keys)
	a.expected[n] = max(a.expected[n], keys)
}

// refused records that shard n is full.
func (a *allocator) refused(n shards.Number) { a.added(n, a.shards.Capacity(n)) }

// failed records that shard n did not count the key, and whether its host is unreachable.
func (a *allocator) failed(n shards.Number, down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.underway[n]--
	a.expected[n]--
	if down {
		a.down[a.shards.HostIndex(n)] = true
	}
}

// stale reports whether the last count is older than maxAge.
func (a *allocator) stale(maxAge time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.counted.IsZero() || time.Since(a.counted) >= maxAge
}

// learn stores the keys of each shard, -1 for one that did not answer. Nil keys reset the counts, so that hosts and shards
// are tried again.
func (a *allocator) learn(keys []int64, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted = at
	clear(a.down)
	if keys == nil {
		clear(a.known)
		return // without counts, expected is not used
	}
	for i, count := range keys {
		if count < 0 {
			a.down[a.shards.HostIndex(shards.Number(i))] = true
			continue
		}
		a.known[i], a.expected[i] = count, count+a.underway[i]
	}
}
