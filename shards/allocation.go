package shards

import (
	"fmt"
	"math"
	"slices"
)

// The ways of [Allocation] to choose a shard. None chooses one on a closed host, or one that is full.
const (
	// Weighted chooses a random host, one of weight 2 twice as often as one of weight 1, and any of its shards.
	Weighted = "weighted"
	// LeastUsed chooses the shard with the fewest keys.
	LeastUsed = "least_used"
	// MostLeft chooses the shard with the most room: its capacity less its keys.
	MostLeft = "capacity"
)

// Allocation is how a directory chooses the shard of a new key, and [ByID] the shard that makes one.
type Allocation struct {
	By       string `json:"by" yaml:"by"`                       // Weighted, LeastUsed or MostLeft; defaults to Weighted
	Capacity int    `json:"capacity,omitempty" yaml:"capacity"` // the most keys in one shard; defaults to no limit. See Host.Capacity
}

func (a Allocation) check(at string) error {
	if !slices.Contains([]string{Weighted, LeastUsed, MostLeft}, a.By) {
		return invalid(at+".by", quoted(a.By))
	}
	if a.Capacity < 0 {
		return &FieldError{Field: at + ".capacity", Found: fmt.Sprint(a.Capacity), Expected: "the most keys in one shard, 1 or more"}
	}
	return nil
}

// NoLimit is the capacity of a shard that has no limit.
const NoLimit = math.MaxInt64

// capacities returns the capacities of shards. The host of shard n is hosts[placement[n]]. All shards of a host have
// equal parts of its capacity: one row in each shard's schema then enforces both limits, and the new keys of a host
// do not all wait for the same row.
func (a Allocation) capacities(hosts []Host, placement []int) []int64 {
	total, seen := make([]int64, len(hosts)), make([]int64, len(hosts)) // shards of each host
	for _, host := range placement {
		total[host]++
	}
	limits := make([]int64, len(placement))
	for n, host := range placement {
		limits[n] = NoLimit
		if a.Capacity > 0 {
			limits[n] = int64(a.Capacity)
		}
		if capacity := int64(hosts[host].Capacity); capacity > 0 {
			part := capacity*(seen[host]+1)/total[host] - capacity*seen[host]/total[host]
			limits[n] = min(limits[n], part)
		}
		seen[host]++
	}
	return limits
}
