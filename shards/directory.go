package shards

import (
	"fmt"
	"math"
)

// inDirectory is the strategy of a directory: the map only knows where the entries are.
type inDirectory struct{}

func (inDirectory) forKey(key int64) (Number, error) {
	return 0, fmt.Errorf("key %d: %w", key, ErrInDirectory)
}

func (inDirectory) forText(key string) (Number, error) {
	return 0, fmt.Errorf("key %q: %w", key, ErrInDirectory)
}
func (inDirectory) explain(Key) string { return "" }

// HasDirectory reports whether the strategy is a directory.
func (m *Map) HasDirectory() bool { return m.config.Strategy.By == Directory }

// Allocates reports whether the strategy chooses the shards of new keys, as a directory and [ByID] do. Each shard then
// counts its keys in its table kiloshard_usage.
func (m *Map) Allocates() bool { return m.config.Strategy.allocates() }

// MakesKeys reports whether each ID is a key of the shard that made it: with [ByID], and with a directory in which
// keys without an entry are IDs.
func (m *Map) MakesKeys() bool {
	s := m.config.Strategy
	return s.By == ByID || s.By == Directory && s.Otherwise != nil && s.Otherwise.By == ByID
}

// EntryShard returns the shard whose table holds the directory's entry of a key: the remainder of the xxHash of its text
// divided by [Strategy.Of]. The result is meaningless without a directory.
func (m *Map) EntryShard(key Key) Number {
	n, _ := pick(m.entries, key)
	return n
}

// Otherwise returns the shard of a key without an entry, or [ErrNoShard] if such a key has none.
func (m *Map) Otherwise(key Key) (Number, error) {
	if m.otherwise == nil {
		return 0, noShardFor(key, "has no entry in the directory")
	}
	return pick(m.otherwise, key)
}

// ExplainOtherwise returns the arithmetic of [Map.Otherwise] as [Map.Explain] does, empty if that returns an error.
func (m *Map) ExplainOtherwise(key Key) string {
	if _, err := m.Otherwise(key); err != nil {
		return ""
	}
	return m.otherwise.explain(key)
}

// NoLimit is the capacity of a shard that has no limit.
const NoLimit = math.MaxInt64

// Capacity returns how many keys may be put into shard n: [Allocation.Capacity], or the shard's part of its
// host's capacity if that is less, else [NoLimit]. The parts of all shards of a host add up to [Host.Capacity]. It
// panics where [Map.Has] is false.
func (m *Map) Capacity(n Number) int64 { return m.capacity[n] }

// capacities returns the capacities of all shards. Every shard of a host has an equal part of the host's, so one row in
// each shard's schema enforces both limits, and the new keys of a host do not all wait for the same row.
func (m *Map) capacities() []int64 {
	limits := make([]int64, m.Len())
	seen := make([]int64, len(m.config.Hosts))
	total := make([]int64, len(m.config.Hosts))
	for _, host := range m.home {
		total[host]++
	}
	for n, host := range m.home {
		limits[n] = NoLimit
		if capacity := m.config.Strategy.Allocate.Capacity; capacity > 0 {
			limits[n] = int64(capacity)
		}
		if capacity := int64(m.config.Hosts[host].Capacity); capacity > 0 {
			part := capacity*(seen[host]+1)/total[host] - capacity*seen[host]/total[host]
			limits[n] = min(limits[n], part)
		}
		seen[host]++
	}
	return limits
}
