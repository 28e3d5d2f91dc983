package router_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// wandering are the hosts, by index, on which the shards of each quarter may live.
var wandering = [4][2]int{{0, 0}, {0, 1}, {1, 2}, {2, 1}}

func ofShard(n int) [2]int { return wandering[n*4/shardCount] }

// wander returns a map in which each shard lives on one of its hosts. A host without shards is not in it.
func (b *testBundle) wander(t *testing.T, version int) *shards.Map {
	t.Helper()
	c := b.Map().Config()
	c.Version, c.Hosts, c.Placement = version, nil, nil
	on := map[int][]shards.Number{}
	for _, hosts := range wandering {
		for range 2 { // in two parts, so that a host may lose a part of what it has
			host := hosts[rand.IntN(2)]
			for range shardCount / 8 {
				on[host] = append(on[host], shards.Number(len(on[0])+len(on[1])+len(on[2])))
			}
		}
	}
	for i, dsn := range b.dsns {
		if len(on[i]) > 0 {
			name := fmt.Sprintf("pg-%c", 'a'+i)
			c.Hosts = append(c.Hosts, shards.Host{Name: name, DSN: dsn, Weight: 1 + version%3})
			c.Placement = append(c.Placement, shards.Placement{Shards: shards.SetOf(on[i]...), Host: name})
		}
	}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// databasesOf returns the names of the databases of the hosts.
func (b *testBundle) databasesOf(ctx context.Context, t *testing.T) (names []string) {
	t.Helper()
	for _, dsn := range b.dsns {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, conn.Config().Database)
		_ = conn.Close(ctx)
	}
	return names
}

// Maps change under load: no call fails, each is answered by its shard and on a host that has it.
func TestMapChangesUnderLoad(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 3})
	names := b.databasesOf(ctx, t)
	maps := newSource(b.wander(t, 1))
	r := maps.follow(ctx, t)

	var stop atomic.Bool
	var calls atomic.Int64
	var wait sync.WaitGroup
	check := func(n int, owner int64, database string, err error) {
		calls.Add(1)
		on := ofShard(n)
		if err != nil || owner != int64(n) || database != names[on[0]] && database != names[on[1]] {
			t.Errorf("shard %d was answered by %d in %s: %v", n, owner, database, err)
			stop.Store(true)
		}
	}
	const query = `select owner, current_database()::text from photos where id = $1`
	for range 16 {
		wait.Go(func() {
			n := rand.IntN(shardCount)
			kept, err := r.ForShard(shards.Number(n)) // a handle from long ago goes the new way
			if err != nil {
				t.Error(err)
				return
			}
			for !stop.Load() {
				var owner int64
				var database string
				err := kept.QueryRow(ctx, query, 1).Scan(&owner, &database)
				check(n, owner, database, err)

				key := rand.IntN(shardCount)
				s, err := r.ForKey(ctx, shards.NumberKey(int64(key)))
				if err != nil {
					t.Error(err)
					return
				}
				err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
					if _, err := tx.Exec(ctx, `update photos set title = title where id = $1`, 1); err != nil {
						return err
					}
					return tx.QueryRow(ctx, query, 1).Scan(&owner, &database)
				})
				check(key, owner, database, err)
			}
		})
	}
	wait.Go(func() {
		type row struct {
			Owner    int64
			Database string `db:"current_database"`
		}
		q := many.Query[row]{SQL: query, Args: []any{1}, Scan: pgx.RowToStructByName[row]}
		for !stop.Load() {
			all, err := many.Collect(ctx, r, r.All(), q)
			if err != nil || len(all) != shardCount {
				t.Errorf("%d rows of all shards: %v", len(all), err)
				return
			}
			for _, one := range all {
				check(int(one.Owner), one.Owner, one.Database, nil)
			}
		}
	})
	for version := 2; version <= 200 && !stop.Load(); version++ {
		maps.put(b.wander(t, version), nil)
		until(t, fmt.Sprintf("version %d", version), func() bool { return r.MapState().Version == version })
	}
	stop.Store(true)
	wait.Wait()
	t.Logf("%d calls while %d maps came", calls.Load(), r.MapState().Swaps)
	r.Close()
	until(t, "the end of all connections", func() bool {
		const query = `select count(*) from pg_stat_activity where datname = any($1) and pid <> pg_backend_pid() and application_name = ''`
		var left int
		if err := b.plain.QueryRow(ctx, query, names).Scan(&left); err != nil {
			t.Fatal(err)
		}
		return left <= 1 // the plain pool has one itself
	})
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(testLimit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Handles of one shard are equal, and rows show no connection, wherever the shard has gone meanwhile.
func TestHandlesAreEqual(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 3})
	before := make([]router.Shard, shardCount)
	for n := range before {
		before[n] = b.shard(t, n)
	}
	for version := 2; version < 20; version++ {
		if err := b.SetMap(b.wander(t, version)); err != nil {
			t.Fatal(err)
		}
		for n := range before {
			if b.shard(t, n) != before[n] || before[n].Host().Name != b.Map().Host(shards.Number(n)).Name {
				t.Fatalf("version %d: %s, and %s", version, before[n], b.shard(t, n))
			}
		}
	}
	rows, err := before[9].Query(ctx, `select owner from photos`)
	if err != nil || rows.Conn() != nil {
		t.Errorf("got rows with a connection, %v", err)
	}
	if owners, err := pgx.CollectRows(rows, pgx.RowTo[int]); err != nil || !slices.Equal(owners, []int{9}) {
		t.Errorf("got %v, %v", owners, err)
	}
	err = before[9].Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select owner from photos`)
		if err == nil && rows.Conn() != tx.Conn() {
			t.Error("the rows of a transaction are without its connection")
		}
		rows.Close()
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// What began on the old home ends there, though the host has left the map.
func TestTransactionOutlivesItsHost(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	names := b.databasesOf(ctx, t)
	s := b.shard(t, 40)
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := b.shard(t, 41).Query(ctx, `select current_database()::text from generate_series(1, 3)`)
	if err != nil {
		t.Fatal(err)
	}
	c := b.Map().Config()
	c.Hosts = c.Hosts[:1]
	c.Placement = []shards.Placement{{Shards: b.All(), Host: "pg-a"}}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.SetMap(m); err != nil {
		t.Fatal(err)
	}
	if got := s.Host().Name; got != "pg-a" {
		t.Errorf("the handle says %s", got)
	}
	const query = `select current_database()::text`
	var old, now string
	if err := tx.QueryRow(ctx, query).Scan(&old); err != nil || old != names[1] {
		t.Errorf("the transaction is in %s: %v", old, err)
	}
	if err := s.QueryRow(ctx, query).Scan(&now); err != nil || now != names[0] {
		t.Errorf("a new statement is in %s: %v", now, err)
	}
	if all, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(all) != 3 || all[2] != names[1] {
		t.Errorf("rows %v: %v", all, err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Error(err)
	}
	if got := len(b.Stats()); got != 1 {
		t.Errorf("figures on %d hosts", got)
	}
}

// The trouble of a source is over when the source is well again, with the map that the router has. That a map was refused
// stays.
func TestMapTroubleEnds(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	maps := &tellingSource{source: source{m: b.Map(), news: make(chan struct{})}}
	r, err := router.New(ctx, router.Config{Maps: maps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	fail := func(why error) {
		t.Helper()
		maps.why.Store(&why)
		maps.put(nil, why)
		until(t, why.Error(), func() bool { return errors.Is(r.MapState().Err, why) && !r.MapState().ErrAt.IsZero() })
	}
	fail(errors.New("the store is down"))
	maps.why.Store(nil)
	if state := r.MapState(); state.Err != nil || !state.ErrAt.IsZero() {
		t.Errorf("the source is well, and there is %v at %v", state.Err, state.ErrAt)
	}
	c := b.Map().Config()
	c.Version, c.Cluster = 7, "another"
	other, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	maps.put(other, nil)
	var change *shards.ChangeError
	until(t, "the refusal", func() bool { return errors.As(r.MapState().Err, &change) })
	fail(errors.New("the store is down again"))
	maps.why.Store(nil)
	if state := r.MapState(); !errors.As(state.Err, &change) {
		t.Errorf("the source is well, and of the refusal there is %v", state.Err)
	}
}

// tellingSource is a source that knows whether its map is the present one.
type tellingSource struct {
	source
	why atomic.Pointer[error] // nil while it is
}

func (s *tellingSource) Stale() (since time.Time, why error) {
	if err := s.why.Load(); err != nil {
		return time.Now(), *err
	}
	return time.Time{}, nil
}

// A map that must not follow leaves everything as it is, and so does a source that is down.
func TestMapRefused(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	maps := newSource(b.Map())
	r, err := router.New(ctx, router.Config{Maps: maps})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)

	down := errors.New("the store is down")
	maps.put(nil, down)
	until(t, "the error of the source", func() bool { return errors.Is(r.MapState().Err, down) })

	c := b.Map().Config()
	c.Version, c.Cluster = 7, "another"
	other, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	maps.put(other, nil)
	var change *shards.ChangeError
	until(t, "the refusal", func() bool { return errors.As(r.MapState().Err, &change) })
	if change.Field != "cluster" || r.Map() != b.Map() {
		t.Errorf("%v, and the map is %s", change, r.Map())
	}

	c.Version, c.Cluster = 8, "test"
	c.Hosts = append(c.Hosts, shards.Host{Name: "pg-x", DSN: "postgres://app:s3cret@[::1/app"})
	bad, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	maps.put(bad, nil)
	until(t, "the bad host", func() bool { return r.MapState().Err.Error() != change.Error() })
	isHostError(t, r.MapState().Err, "pg-x")
	if err := r.Ping(ctx); err != nil {
		t.Error(err)
	}
	r.Close()
	if err := r.SetMap(b.Map()); err == nil {
		t.Error("a closed router took a map")
	}
}
