package shards_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

func TestDirectoryOfMap(t *testing.T) {
	t.Parallel()
	otherwise := shards.Strategy{By: shards.Modulo, Of: 16}
	m := mapOf(t, 32, shards.Strategy{By: shards.Directory, Of: 8, Otherwise: &otherwise})
	if _, err := m.ForKey(7); !errors.Is(err, shards.ErrInDirectory) || !m.HasDirectory() {
		t.Errorf("got %v", err)
	}
	if _, err := m.ForText("bob"); !errors.Is(err, shards.ErrInDirectory) {
		t.Errorf("got %v", err)
	}
	seen := map[shards.Number]bool{}
	for key := range int64(1000) {
		n := m.EntryShard(shards.NumberKey(key))
		if n < 0 || n >= 8 || n != m.EntryShard(shards.TextKey(shards.NumberKey(key).String())) {
			t.Fatalf("the entry of %d is in shard %d", key, n)
		}
		seen[n] = true
	}
	if len(seen) != 8 {
		t.Errorf("entries are in %d shards, expected 8", len(seen))
	}
	if n, err := m.Otherwise(shards.NumberKey(31)); err != nil || n != 15 {
		t.Errorf("got shard %d, %v", n, err)
	}
	if how := m.ExplainOtherwise(shards.NumberKey(31)); how != "31 mod 16 = 15" || m.ExplainOtherwise(shards.TextKey("bob")) != "" {
		t.Errorf("explained as %q", how)
	}
	if _, err := m.Otherwise(shards.TextKey("bob")); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("got %v", err)
	}
	if _, err := mapOf(t, 32, shards.Strategy{By: shards.Directory}).Otherwise(shards.NumberKey(31)); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("got %v", err)
	}
}

// The capacities of a host's shards add up to the host's capacity.
func TestCapacity(t *testing.T) {
	t.Parallel()
	c := newConfig(10) // 0 to 3 on pg-a, 4 to 9 on pg-b
	c.Strategy = shards.Strategy{By: shards.Directory, Allocate: shards.Allocation{Capacity: 30}}
	c.Hosts[0].Capacity = 11
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for n := range shards.Number(4) {
		sum += m.Capacity(n)
		if part := m.Capacity(n); part != 2 && part != 3 {
			t.Errorf("shard %d has part %d of 11", n, part)
		}
	}
	if sum != 11 || m.Capacity(4) != 30 {
		t.Errorf("the parts add up to %d of 11, and shard 4 has %d of 30", sum, m.Capacity(4))
	}
	if got := mapOf(t, 10, shards.Strategy{By: shards.Directory}).Capacity(0); got != shards.NoLimit {
		t.Errorf("got %d without a limit", got)
	}
}
