package directory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/directory"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestMain(m *testing.M) { os.Exit(shardtest.Run(m)) }

// store runs statements in the shards of one host, each in a transaction with the shard's path.
type store struct {
	shards *shards.Map
	pool   *pgxpool.Pool
}

func (s store) Map() *shards.Map { return s.shards }

func (s store) in(ctx context.Context, n shards.Number, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local search_path = "+s.shards.SearchPath(n)); err != nil {
			return err
		}
		return fn(tx)
	})
}

// row is the only row of a result, which has one column.
type row struct {
	value int64
	err   error
}

func (r row) Scan(dest ...any) error {
	switch dest := dest[0].(type) {
	case *int64:
		*dest = r.value
	case *shards.Number:
		*dest = shards.Number(r.value)
	}
	return r.err
}

func (s store) QueryRow(ctx context.Context, n shards.Number, query string, args ...any) pgx.Row {
	var r row
	r.err = s.in(ctx, n, func(tx pgx.Tx) error { return tx.QueryRow(ctx, query, args...).Scan(&r.value) })
	return r
}

func (s store) Query(ctx context.Context, _ shards.Number, query string, args ...any) (pgx.Rows, error) {
	return s.pool.Query(ctx, query, args...) // only counts use Query, with qualified names
}

func (s store) Exec(ctx context.Context, n shards.Number, query string, args ...any) (tag pgconn.CommandTag, err error) {
	err = s.in(ctx, n, func(tx pgx.Tx) error {
		tag, err = tx.Exec(ctx, query, args...)
		return err
	})
	return tag, err
}

func setup(t *testing.T, change func(*shards.Config)) store {
	t.Helper()
	config := shardtest.MapConfig(4, shardtest.Hosts(t, 1))
	config.Strategy = shards.Strategy{By: shards.Directory}
	if change != nil {
		change(&config)
	}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return store{m, pool}
}

func open(t *testing.T, s store) *directory.Directory {
	t.Helper()
	d := directory.New(directory.Config{Store: s, MaxAge: time.Hour})
	t.Cleanup(func() { d.Close(errClosed) })
	return d
}

var errClosed = errors.New("closed by the test")

// TestKey allocates a key from two directories at the same time, looks it up and moves it.
func TestKey(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	one, other := open(t, s), open(t, s)
	key := shards.TextKey("alice")
	if _, _, err := one.Lookup(t.Context(), key); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("before it is allocated: %v", err)
	}
	var all sync.WaitGroup
	got := make([]shards.Number, 20)
	for i := range got {
		all.Go(func() {
			n, err := []*directory.Directory{one, other}[i%2].Allocate(t.Context(), key)
			if err != nil {
				t.Error(err)
			}
			got[i] = n
		})
	}
	all.Wait()
	for _, n := range got {
		if n != got[0] {
			t.Fatalf("allocated to shards %v", got)
		}
	}
	fresh := open(t, s)
	for i, want := range []directory.How{directory.Found, directory.Cached} {
		if n, how, err := fresh.Lookup(t.Context(), key); err != nil || n != got[0] || how != want {
			t.Errorf("lookup %d: shard %d, how %d, %v", i, n, how, err)
		}
	}
	if entries, hits, misses := fresh.Stats(); entries != 1 || hits != 1 || misses != 1 {
		t.Errorf("%d entries, %d hits, %d misses", entries, hits, misses)
	}
	to := (got[0] + 1) % 4
	if err := one.Assign(t.Context(), key, to, got[0]); !errors.Is(err, directory.ErrElsewhere) {
		t.Errorf("from a shard that does not have it: %v", err)
	}
	if err := one.Assign(t.Context(), key, got[0], to); err != nil {
		t.Error(err)
	}
	if n, _, err := one.Lookup(t.Context(), key); err != nil || n != to {
		t.Errorf("after it was moved: shard %d, %v", n, err)
	}
	if n, how, err := fresh.Lookup(t.Context(), key); err != nil || n != got[0] || how != directory.Cached {
		t.Errorf("elsewhere, where it is kept: shard %d, how %d, %v", n, how, err)
	}
	one.Close(errClosed)
	if _, err := one.Allocate(t.Context(), shards.TextKey("bob")); !errors.Is(err, errClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestFull allocates more keys than the shards have room for, from many callers.
func TestFull(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *shards.Config) { c.Strategy.Allocate = shards.Allocation{By: shards.LeastUsed, Capacity: 3} })
	d := open(t, s)
	errs := make([]error, 20)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = d.Allocate(t.Context(), shards.TextKey(fmt.Sprint("key ", i))) })
	}
	all.Wait()
	placed := 0
	for _, err := range errs {
		switch {
		case err == nil:
			placed++
		case !errors.Is(err, directory.ErrFull):
			t.Error(err)
		}
	}
	if placed != 12 {
		t.Errorf("%d keys have a shard, expected 12", placed)
	}
	for n := range shards.Number(4) {
		var keys int64
		if err := s.QueryRow(t.Context(), n, `select keys from kiloshard_usage`).Scan(&keys); err != nil || keys != 3 {
			t.Errorf("shard %d counts %d keys, %v", n, keys, err)
		}
	}
}
