package router_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// usage returns how many keys shard n counts.
func (b *testBundle) usage(ctx context.Context, t testing.TB, n int) (keys int64) {
	t.Helper()
	if err := b.shard(t, n).QueryRow(ctx, `select keys from kiloshard_usage`).Scan(&keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestAssign(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2, maxAge: time.Hour, config: func(c *shards.Config) {
		withDirectory(c)
		c.Strategy.Allocate.Capacity = 1
	}})
	five, alice := shards.NumberKey(shardCount+5), shards.TextKey("alice")
	for _, step := range []struct {
		name     string
		key      shards.Key
		from, to shards.Number
		want     error
		is       int // where it is afterwards; -1 if nowhere
	}{
		{"from where it is not", five, 6, 40, router.ErrElsewhere, 5},
		{"from nowhere, which it is not", five, router.Nowhere, 40, router.ErrElsewhere, 5},
		{"from where modulo has it", five, 5, 40, nil, 40},
		{"again", five, 5, 40, router.ErrElsewhere, 40},
		{"to where it is", five, 40, 40, nil, 40},
		{"a name from where it is not", alice, 40, 41, router.ErrElsewhere, -1},
		{"to a shard that is full", alice, router.Nowhere, 40, router.ErrFull, -1},
		{"from nowhere", alice, router.Nowhere, 41, nil, 41},
		{"to another host", alice, 41, 1, nil, 1},
		{"to where another was", five, 40, 41, nil, 41},
		{"to no shard", five, 41, shardCount, shards.ErrNoShard, 41},
		{"to nowhere", five, 41, router.Nowhere, shards.ErrNoShard, 41},
		{"from no shard", five, shardCount, 2, shards.ErrNoShard, 41},
		{"no key", shards.Key{}, 41, 2, shards.ErrNoShard, -1},
	} {
		if err := b.Assign(ctx, step.key, step.from, step.to); !errors.Is(err, step.want) {
			t.Errorf("%s: got %v, expected %v", step.name, err, step.want)
		}
		if step.is >= 0 {
			isIn(ctx, t, b, step.key, step.is)
		}
	}
	for n, want := range map[int]int64{1: 1, 5: 0, 40: 0, 41: 1} {
		if got := b.usage(ctx, t, n); got != want {
			t.Errorf("shard %d counts %d keys, expected %d", n, got, want)
		}
	}
	same := shards.NumberKey(9) // written down where modulo has it
	if err := b.Assign(ctx, same, 9, 9); err != nil {
		t.Error(err)
	}
	if p, err := b.Explain(ctx, same); err != nil || p.How != router.ByCache || p.Shard != 9 {
		t.Errorf("got %s, %v", p, err)
	}
	plain, _ := setup(t, options{})
	if err := plain.Assign(ctx, same, 9, 10); !errors.Is(err, router.ErrNoDirectory) {
		t.Errorf("by arithmetic: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := b.Assign(ended, same, 9, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

// Of many who move a key from the same shard at the same time, one does.
func TestAssignAtTheSameTime(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2, config: onlyDirectory})
	other, _ := setup(t, options{on: b, config: onlyDirectory})
	key := shards.TextKey("alice")
	for _, from := range []shards.Number{router.Nowhere, -2} { // first without an entry, then with one
		if from == -2 {
			s, err := b.ForKey(ctx, shards.TextKey("alice"))
			if err != nil {
				t.Fatal(err)
			}
			from = s.Number()
		}
		var moving sync.WaitGroup
		var winner atomic.Int64
		winner.Store(-1)
		for i := range 20 {
			moving.Go(func() {
				r, to := b, shards.Number(10+i)
				if i%2 == 0 {
					r = other
				}
				if from >= 0 {
					to += 20
				}
				switch err := r.Assign(ctx, key, from, to); {
				case err == nil && !winner.CompareAndSwap(-1, int64(to)):
					t.Errorf("shards %d and %d both won", winner.Load(), to)
				case err != nil && !errors.Is(err, router.ErrElsewhere):
					t.Error(err)
				}
			})
		}
		moving.Wait()
		fresh, _ := setup(t, options{on: b, config: onlyDirectory})
		isIn(ctx, t, fresh, key, int(winner.Load()))
		total := int64(0)
		for n := range shardCount {
			total += b.usage(ctx, t, n)
		}
		if got := b.usage(ctx, t, int(winner.Load())); got != 1 || total != 1 {
			t.Errorf("shard %d counts %d keys, all shards %d", winner.Load(), got, total)
		}
	}
}

// What may have changed is asked for again: here the server breaks off when an entry is replaced.
func TestAssignFails(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{config: onlyDirectory, maxAge: time.Hour})
	key := shards.TextKey("alice")
	b.entry(ctx, t, key, 7)
	isIn(ctx, t, b, key, 7)
	schema := b.Map().Schema(b.Map().EntryShard(key))
	b.run(ctx, t, `create function kiloshard.on_update() returns trigger language plpgsql as $$
		begin perform pg_terminate_backend(pg_backend_pid()); return new; end $$`)
	b.run(ctx, t, `create trigger on_update before update on `+schema+`.kiloshard_directory
		for each row execute function kiloshard.on_update()`)
	if err := b.Assign(ctx, key, 7, 8); err == nil || errors.Is(err, router.ErrElsewhere) {
		t.Errorf("got %v", err)
	}
	if got := b.usage(ctx, t, 8); got != 1 {
		t.Errorf("shard 8 counts %d keys, expected the one that may be there", got)
	}
	b.run(ctx, t, `drop trigger on_update on `+schema+`.kiloshard_directory`)
	b.entry(ctx, t, key, 8) // as if it had been done after all
	isIn(ctx, t, b, key, 8)
}
