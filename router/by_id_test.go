package router_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

func byID(a shards.Allocation) func(*shards.Config) {
	return func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.ByID, Allocate: a} }
}

// TestSignUpByID signs users up whose numbers are IDs, and finds each by its number alone.
func TestSignUpByID(t *testing.T) {
	t.Parallel()
	config := func(c *shards.Config) {
		byID(shards.Allocation{By: shards.LeastUsed, Capacity: 3})(c)
		c.Hosts[1].Closed = true // with shards 32 to 63
	}
	b, ctx := setup(t, options{hosts: 2, config: config})
	const room = 3 * shardCount / 2
	var signing sync.WaitGroup
	ids := make([]shards.ID, room)
	for i := range ids {
		signing.Go(func() {
			shard, err := b.NewShard(ctx)
			if err == nil {
				ids[i], err = shard.NextID(ctx)
			}
			if err != nil {
				t.Errorf("user %d: %v", i, err)
			}
		})
	}
	signing.Wait()
	users := map[shards.Number]int{}
	for _, id := range ids {
		made, err := b.ForID(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []shards.Key{shards.NumberKey(int64(id)), shards.TextKey(fmt.Sprint(int64(id)))} {
			if s, err := b.ForKey(ctx, key); err != nil || s != made {
				t.Errorf("key %s: %v, %v, expected %v", key, s, err, made)
			}
		}
		users[made.Number()]++
	}
	for n := range shards.Number(shardCount) {
		want := 3
		if n >= shardCount/2 {
			want = 0
		}
		if users[n] != want || b.usage(ctx, t, int(n)) != int64(want) {
			t.Errorf("shard %d has %d users and counts %d, expected %d", n, users[n], b.usage(ctx, t, int(n)), want)
		}
	}
	if _, err := b.NewShard(ctx); !errors.Is(err, router.ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if path, err := b.Explain(ctx, shards.NumberKey(int64(ids[0]))); err != nil || path.How != router.ByArithmetic || !strings.Contains(path.String(), "was made by shard") || path.Note != "" {
		t.Errorf("explained as %s, %v", path, err)
	}
}

// TestSignUpByAddress gives a shard to an address, by which the user logs in, and finds the rest by the user's number.
func TestSignUpByAddress(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{config: func(c *shards.Config) {
		c.Strategy = shards.Strategy{By: shards.Directory, Otherwise: &shards.Strategy{By: shards.ByID}}
	}})
	address := shards.TextKey("alice@example.org")
	home, err := b.ForNew(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	id, err := home.NextID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []shards.Key{address, shards.NumberKey(int64(id))} {
		if s, err := b.ForKey(ctx, key); err != nil || s != home {
			t.Errorf("key %s: %v, %v, expected %v", key, s, err, home)
		}
	}
	if _, err := b.NewShard(ctx); err != nil {
		t.Errorf("without a key: %v", err)
	}
}

// TestIDAsKey looks an ID up as if it were a key, by mistake.
func TestIDAsKey(t *testing.T) {
	t.Parallel()
	config := func(refuse bool) func(*shards.Config) {
		return func(c *shards.Config) {
			c.Strategy = shards.Strategy{By: shards.Modulo, RefuseIDs: refuse}
		}
	}
	b, ctx := setup(t, options{config: config(true)})
	id, err := b.shard(t, 5).NextID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	key := shards.NumberKey(int64(id))
	if _, err := b.ForKey(ctx, key); !errors.Is(err, shards.ErrIsID) || !strings.Contains(err.Error(), "was made by shard 5 at ") {
		t.Errorf("ForKey: %v", err)
	}
	if _, err := b.ForNew(ctx, key); !errors.Is(err, shards.ErrIsID) {
		t.Errorf("ForNew: %v", err)
	}
	if _, err := b.NewShard(ctx); !errors.Is(err, router.ErrNeedsKey) {
		t.Errorf("ForNew without a key: %v", err)
	}
	if s, err := b.ForKey(ctx, shards.NumberKey(31341)); err != nil || s.Number() != 31341%shardCount {
		t.Errorf("a key: %v, %v", s, err)
	}
	// A map that does not refuse them says so to who asks.
	c := b.Map().Config()
	c.Strategy.RefuseIDs = false
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetMap(m); err != nil {
		t.Fatal(err)
	}
	path, err := b.Explain(ctx, key)
	if elsewhere := path.Shard != 5; err != nil || elsewhere != strings.Contains(path.Note, "was made by shard 5 at ") {
		t.Errorf("explained as %s, note %q, %v", path, path.Note, err)
	}
}
