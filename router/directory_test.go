package router_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// withDirectory makes a map's strategy a directory, with modulo for keys that it does not have.
func withDirectory(c *shards.Config) {
	c.Strategy = shards.Strategy{By: shards.Directory, Otherwise: &shards.Strategy{By: shards.Modulo}}
}

// onlyDirectory makes a map's strategy a directory and nothing else.
func onlyDirectory(c *shards.Config) { c.Strategy = shards.Strategy{By: shards.Directory} }

// entry writes the entry of a key past the router.
func (b *testBundle) entry(ctx context.Context, t testing.TB, key shards.Key, n int) {
	t.Helper()
	const query = `insert into kiloshard_directory values ($1, $2) on conflict (key) do update set shard = $2`
	if _, err := b.shard(t, int(b.Map().EntryShard(key))).Exec(ctx, query, key.String(), n); err != nil {
		t.Fatal(err)
	}
}

// isIn checks where a router takes a key.
func isIn(ctx context.Context, t testing.TB, r *testBundle, key shards.Key, want int) {
	t.Helper()
	s, err := r.ForKey(ctx, key)
	if err != nil || int(s.Number()) != want {
		t.Errorf("key %s went to %v, %v, expected shard %d", key, numberOf(s, err), err, want)
	}
}

// numberOf returns the number of a shard, and -1 instead of one that is none.
func numberOf(s router.Shard, err error) shards.Number {
	if err != nil {
		return -1
	}
	return s.Number()
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2, config: withDirectory})
	for i, key := range []shards.Key{shards.NumberKey(7), shards.NumberKey(-7), shards.TextKey("alice"), shards.TextKey(""), shards.TextKey(strings.Repeat("é", 512))} {
		b.entry(ctx, t, key, 60-i)
		isIn(ctx, t, b, key, 60-i)
	}
	if s, err := b.ForKey(ctx, shards.NumberKey(-7)); err != nil || s.Number() != 59 || s.Host().Name != "pg-b" {
		t.Errorf("key -7 went to %v, %v", numberOf(s, err), err)
	}
	isIn(ctx, t, b, shards.NumberKey(shardCount+5), 5) // otherwise
	if _, err := b.ForKey(ctx, shards.TextKey("bob")); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("neither entry nor number: %v", err)
	}
	for _, key := range []string{strings.Repeat("é", 513), "\xff", "a\x00"} {
		var e *shards.FieldError
		if _, err := b.ForKey(ctx, shards.TextKey(key)); !errors.As(err, &e) || e.Field != "key" {
			t.Errorf("%.10q: %v", key, err)
		}
	}
	b.entry(ctx, t, shards.TextKey("lost"), shardCount)
	if _, err := b.ForKey(ctx, shards.TextKey("lost")); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("an entry that names no shard: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.ForKey(ended, shards.TextKey("unknown")); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

func TestDirectoryCache(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{config: onlyDirectory})
	key := shards.TextKey("alice")
	b, _ := setup(t, options{on: db, config: onlyDirectory, maxAge: time.Hour})
	if _, err := b.ForKey(ctx, shards.TextKey("alice")); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("without an entry: %v", err)
	}
	db.entry(ctx, t, key, 3)
	isIn(ctx, t, b, key, 3) // that there was none is not remembered
	db.entry(ctx, t, key, 4)
	isIn(ctx, t, b, key, 3) // what there was is

	old, _ := setup(t, options{on: db, config: onlyDirectory, maxAge: time.Nanosecond})
	isIn(ctx, t, old, key, 4)
	db.entry(ctx, t, key, 5)
	isIn(ctx, t, old, key, 5)

	small, _ := setup(t, options{on: db, config: onlyDirectory, maxAge: time.Hour, cache: 1})
	isIn(ctx, t, small, key, 5)
	db.entry(ctx, t, key, 6)
	db.entry(ctx, t, shards.TextKey("bob"), 7)
	isIn(ctx, t, small, shards.TextKey("bob"), 7)
	isIn(ctx, t, small, key, 6) // the one entry that is kept was the other
}

func TestDirectoryAsksOnce(t *testing.T) {
	t.Parallel()
	log := &queryLog{}
	b, ctx := setup(t, options{config: onlyDirectory, pool: log.watch})
	key := shards.TextKey("alice")
	b.entry(ctx, t, key, 3)

	// The one lookup waits for a lock, and so all who ask come to it.
	tx, err := b.plain.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "lock table "+b.Map().Schema(b.Map().EntryShard(key))+".kiloshard_directory"); err != nil {
		t.Fatal(err)
	}
	const askers = 50
	var asking sync.WaitGroup
	leaving, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	asking.Go(func() { _, err := b.ForKey(leaving, shards.TextKey("alice")); left <- err })
	log.await(ctx, t, "select shard from kiloshard_directory", 1)
	for range askers {
		asking.Go(func() { isIn(ctx, t, b, key, 3) })
	}
	leave() // the one who began it goes, which disturbs nobody
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	asking.Wait()
	if n := log.count("select shard from kiloshard_directory"); n != 1 {
		t.Errorf("%d lookups for %d askers", n, askers)
	}
}

func TestDirectoryIsLacking(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{})
	b, ctx := setup(t, options{on: db, config: onlyDirectory})
	_, err := b.ForKey(ctx, shards.TextKey("alice"))
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || !strings.Contains(err.Error(), "kiloshard create makes the tables of the strategy") {
		t.Errorf("got %v", err)
	}
	if _, err := b.ForNew(ctx, shards.TextKey("alice")); !errors.As(err, &pgErr) {
		t.Errorf("got %v", err)
	}
}

func TestDirectoryAfterClose(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{config: onlyDirectory})
	b.Close()
	if _, err := b.ForKey(ctx, shards.TextKey("alice")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
	if _, err := b.ForNew(ctx, shards.TextKey("alice")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
}
