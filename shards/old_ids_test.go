package shards_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// TestOldIDs holds that an ID below old_ids_below names no shard, and one from there on does.
func TestOldIDs(t *testing.T) {
	t.Parallel()
	c, err := shards.Parse("kiloshard.yaml", []byte(document+"old_ids_below: 1099511627776\n"), environment)
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []shards.ID{0, 42, 1<<40 - 1} {
		if _, err := m.ForID(id); !errors.Is(err, shards.ErrNoShard) || !strings.Contains(err.Error(), "is from the time before the shards, whose IDs begin at 1099511627776: expected its key instead, by ForKey") {
			t.Errorf("ID %d: got %v", id, err)
		}
	}
	if n, err := m.ForID(1<<40 + 1<<10); err != nil || n != 1 {
		t.Errorf("an ID of a shard: got %d, %v", n, err)
	}
	if text, err := c.YAML(); err != nil || !strings.Contains(string(text), "\nold_ids_below: 1099511627776\n") {
		t.Errorf("written as\n%s%v", text, err)
	}
	if _, err := shards.Parse("kiloshard.yaml", []byte(document+"old_ids_below: -1\n"), environment); err == nil || !strings.Contains(err.Error(), "old_ids_below: -1; expected a whole number, 1 or more") {
		t.Errorf("a negative one: %v", err)
	}
	c.Layout = shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	if _, err := c.Map(); err == nil || !strings.Contains(err.Error(), "old_ids_below: 1099511627776; expected none, since IDs have no time") {
		t.Errorf("without a time: %v", err)
	}
	c.Layout = shards.Layout{Time: 30, Shard: 13, Sequence: 10}
	c.OldIDsBelow = 1 << 60
	if _, err := c.Map(); err == nil || !strings.Contains(err.Error(), "old_ids_below: 1152921504606846976; expected an ID that a shard can make") {
		t.Errorf("beyond the layout: %v", err)
	}
}
