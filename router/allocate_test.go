package router_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// allocating returns what makes a map's strategy a directory with an allocation.
func allocating(a shards.Allocation) func(*shards.Config) {
	return func(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Directory, Allocate: a} }
}

// counts returns how many entries name each shard, and checks that each shard counts as many.
func (b *testBundle) counts(ctx context.Context, t testing.TB) []int64 {
	t.Helper()
	counts := make([]int64, shardCount)
	for n := range shardCount {
		rows, err := b.shard(t, n).Query(ctx, `select shard from kiloshard_directory`)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var named int
			if err := rows.Scan(&named); err != nil {
				t.Fatal(err)
			}
			counts[named]++
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range counts {
		if got := b.usage(ctx, t, n); got != want {
			t.Errorf("shard %d counts %d keys, %d entries name it", n, got, want)
		}
	}
	return counts
}

// signUp gives a shard to new keys 0 to count-1, all at the same time, and returns how many were refused.
func signUp(ctx context.Context, t testing.TB, count int, routers ...*testBundle) (full int) {
	t.Helper()
	var signing sync.WaitGroup
	var mu sync.Mutex
	for i := range count {
		signing.Go(func() {
			_, err := routers[i%len(routers)].ForNew(ctx, shards.NumberKey(int64(i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, router.ErrFull):
				full++
			case err != nil:
				t.Errorf("key %d: %v", i, err)
			}
		})
	}
	signing.Wait()
	return full
}

func sum(counts []int64) (total int64) {
	for _, count := range counts {
		total += count
	}
	return total
}

const signUps = 450

func TestAllocateLeastUsed(t *testing.T) {
	t.Parallel()
	config := allocating(shards.Allocation{By: shards.LeastUsed})
	b, ctx := setup(t, options{hosts: 2, config: config})
	b.run(ctx, t, `update shard_00003.kiloshard_usage set keys = 5`) // as if it had some
	if full := signUp(ctx, t, signUps-5, b); full != 0 {
		t.Errorf("%d found no room", full)
	}
	b.run(ctx, t, `update shard_00003.kiloshard_usage set keys = keys - 5`)
	for n, count := range b.counts(ctx, t) {
		if n == 3 {
			count += 5
		}
		if least := int64(signUps / shardCount); count != least && count != least+1 {
			t.Errorf("shard %d has %d keys", n, count)
		}
	}
}

func TestAllocateByCapacity(t *testing.T) {
	t.Parallel()
	config := func(c *shards.Config) {
		allocating(shards.Allocation{By: shards.MostLeft})(c)
		c.Hosts[0].Capacity, c.Hosts[1].Capacity = 300, 100
	}
	b, ctx := setup(t, options{hosts: 2, config: config})
	other, _ := setup(t, options{on: b, config: config})
	if full := signUp(ctx, t, signUps, b, other); full != signUps-400 {
		t.Errorf("%d found no room, expected %d", full, signUps-400)
	}
	counts := b.counts(ctx, t)
	if onA, onB := sum(counts[:32]), sum(counts[32:]); onA != 300 || onB != 100 {
		t.Errorf("%d keys on pg-a, %d on pg-b, expected 300 and 100", onA, onB)
	}
	for n, count := range counts {
		if count != b.Map().Capacity(shards.Number(n)) {
			t.Errorf("shard %d has %d keys", n, count)
		}
	}

	// A key that leaves makes room for one.
	s, err := b.ForNew(ctx, shards.NumberKey(firstIn(ctx, t, b)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Exec(ctx, `update kiloshard_usage set keys = keys - 1`); err != nil {
		t.Fatal(err)
	}
	if got, err := other.ForNew(ctx, shards.TextKey("late")); err != nil || got.Number() != s.Number() {
		t.Errorf("got %v, %v, expected %s", numberOf(got, err), err, s)
	}
	if _, err := b.ForNew(ctx, shards.TextKey("too late")); !errors.Is(err, router.ErrFull) {
		t.Errorf("got %v", err)
	}
}

// firstIn returns the first key of those that signed up that has a shard.
func firstIn(ctx context.Context, t testing.TB, b *testBundle) int64 {
	t.Helper()
	for key := range int64(signUps) {
		if _, err := b.ForKey(ctx, shards.NumberKey(key)); err == nil {
			return key
		}
	}
	t.Fatal("no key has a shard")
	return 0
}

func TestAllocateWeighted(t *testing.T) {
	t.Parallel()
	config := func(c *shards.Config) {
		allocating(shards.Allocation{})(c)
		c.Hosts[0].Weight, c.Hosts[1].Weight, c.Hosts[2].Weight = 3, 1, 9
		c.Hosts[2].Closed = true
	}
	b, ctx := setup(t, options{hosts: 3, config: config})
	other, _ := setup(t, options{on: b, config: config})
	if full := signUp(ctx, t, signUps, b, other); full != 0 {
		t.Errorf("%d found no room", full)
	}
	counts := b.counts(ctx, t)
	onA, onB, onC := sum(counts[:21]), sum(counts[21:42]), sum(counts[42:])
	// Two thirds of pg-a's share is 12 standard deviations away.
	if onA+onB != signUps || onA < signUps/2 || onB < signUps/20 || onC != 0 {
		t.Errorf("%d, %d and %d keys by weights 3, 1 and 9, the last one closed", onA, onB, onC)
	}
}

// A shard's limit holds whatever chooses the shard.
func TestAllocateWeightedWithCapacity(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{config: allocating(shards.Allocation{Capacity: 2})})
	if full := signUp(ctx, t, 200, b); full != 200-2*shardCount {
		t.Errorf("%d found no room, expected %d", full, 200-2*shardCount)
	}
	for n, count := range b.counts(ctx, t) {
		if count != 2 {
			t.Errorf("shard %d has %d keys", n, count)
		}
	}
}

// However many ask for a shard for the same key, in however many routers, one is chosen.
func TestAllocateOneKeyOnce(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2, config: onlyDirectory})
	routers := []*testBundle{b}
	for range 3 {
		other, _ := setup(t, options{on: b, config: onlyDirectory})
		routers = append(routers, other)
	}
	for round := range 10 {
		key := shards.TextKey(fmt.Sprintf("user %d", round))
		var asking sync.WaitGroup
		chosen := make([]shards.Number, 100)
		for i := range chosen {
			asking.Go(func() {
				s, err := routers[i%len(routers)].ForNew(ctx, key)
				if err != nil {
					t.Error(err)
					return
				}
				chosen[i] = s.Number()
			})
		}
		asking.Wait()
		for _, n := range chosen {
			if n != chosen[0] {
				t.Fatalf("key %s is in shards %d", key, chosen)
			}
		}
		fresh, _ := setup(t, options{on: b, config: onlyDirectory})
		isIn(ctx, t, fresh, key, int(chosen[0]))
	}
	if total := sum(b.counts(ctx, t)); total != 10 {
		t.Errorf("%d entries of 10 keys", total)
	}
}

func TestAllocatePassesBy(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{maxAge: time.Hour, config: onlyDirectory})
	b.entry(ctx, t, shards.TextKey("alice"), 7)
	if s, err := b.ForNew(ctx, shards.TextKey("alice")); err != nil || s.Number() != 7 {
		t.Errorf("a key that has an entry: %v, %v", numberOf(s, err), err)
	}
	b.entry(ctx, t, shards.TextKey("alice"), 8)
	if s, err := b.ForNew(ctx, shards.TextKey("alice")); err != nil || s.Number() != 7 {
		t.Errorf("a key whose entry is in the cache: %v, %v", numberOf(s, err), err)
	}
	plain, _ := setup(t, options{})
	if s, err := plain.ForNew(ctx, shards.NumberKey(shardCount+9)); err != nil || s.Number() != 9 {
		t.Errorf("by arithmetic: %v, %v", numberOf(s, err), err)
	}
	if _, err := plain.ForNew(ctx, shards.TextKey("alice")); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("by arithmetic, a text: %v", err)
	}
	closed, _ := setup(t, options{on: b, config: func(c *shards.Config) { onlyDirectory(c); c.Hosts[0].Closed = true }})
	if _, err := closed.ForNew(ctx, shards.TextKey("bob")); !errors.Is(err, router.ErrFull) {
		t.Errorf("with all hosts closed: %v", err)
	}
}

// New keys go to the hosts that answer. Only the entries of some are on the one that does not.
func TestAllocateWithoutAHost(t *testing.T) {
	t.Parallel()
	for _, by := range []string{shards.Weighted, shards.LeastUsed} {
		b, ctx := setup(t, options{config: func(c *shards.Config) {
			allocating(shards.Allocation{By: by})(c)
			c.Strategy.Of = 32 // entries are where there is a host
		}})
		down, _ := setup(t, options{on: b, config: func(c *shards.Config) {
			c.Strategy = b.Map().Strategy()
			c.Hosts = append(c.Hosts, shards.Host{Name: "pg-down", DSN: "postgres://app@127.0.0.1:1/app?connect_timeout=5"})
			c.Placement = []shards.Placement{
				{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: 31}), Host: "pg-a"},
				{Shards: shards.SetOfRanges(shards.Range{First: 32, Last: shardCount - 1}), Host: "pg-down"},
			}
		}})
		if full := signUp(ctx, t, 30, down); full != 0 {
			t.Errorf("%s: %d found no room", by, full)
		}
		if counts := b.counts(ctx, t); sum(counts[:32]) != 30 {
			t.Errorf("%s: %d keys where there is a host", by, sum(counts[:32]))
		}
	}
}
