package metrics_test

import (
	"context"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// startPair starts a primary and its standby, with a database app.
func startPair(t *testing.T) (primary, standby *localpg.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	primary = shardtest.OwnServer(t)
	if _, err := primary.CreateDatabase(ctx, "app"); err != nil {
		t.Fatal(err)
	}
	do(t, primary, `create schema shard_00000; create table shard_00000.photos (id bigint primary key, title text)`)
	return primary, shardtest.Standby(t, primary, "standby")
}

// do runs a script past the router.
func do(t *testing.T, s *localpg.Server, script string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN("app"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

func parsed(t *testing.T, s *localpg.Server) *url.URL {
	t.Helper()
	u, err := url.Parse(s.DSN("app"))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	return u
}

// single returns a router over one host with one shard.
func single(t *testing.T, host shards.Host) (*bundle, context.Context) {
	t.Helper()
	m, err := shardtest.MapConfig(1, []shards.Host{host}).Map()
	if err != nil {
		t.Fatal(err)
	}
	return open(t, router.Config{Map: m})
}

// await waits until a series has the value that is wanted.
func (b *bundle) await(ctx context.Context, t *testing.T, what string, is func(float64) bool, name string, labels ...string) {
	t.Helper()
	for {
		got := b.value(t, name, labels...)
		if is(got) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %s%q is %g", what, name, labels, got)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func equals(want float64) func(float64) bool { return func(got float64) bool { return got == want } }

// lint checks names and texts, with all series there.
func (b *bundle) lint(t *testing.T) {
	t.Helper()
	problems, err := testutil.GatherAndLint(b.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// The primary is killed and the standby promoted.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	first, second := parsed(t, primary), parsed(t, standby)
	both := *first
	both.Host += "," + second.Host
	b, ctx := single(t, shards.Host{Name: "pg-a", DSN: both.String()})
	s := b.shard(t, 0)
	if _, err := s.Exec(ctx, `insert into photos values (1, 'x')`); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"breaker", []string{"state", "closed"}, 1},
		{"breaker", []string{"state", "open"}, 0},
		{"breaker", []string{"state", "half-open"}, 0},
		{"down_seconds", nil, 0},
		{"role_changes_total", nil, 0},
		{"rival_primaries", nil, 0},
		{"primary_info", []string{"address", first.Host}, 1},
		{"primary_info", []string{"address", second.Host}, -1},
	} {
		if got := b.value(t, test.name, append(test.labels, "host", "pg-a")...); got != test.want {
			t.Errorf("%s%q: got %g, want %g", test.name, test.labels, got, test.want)
		}
	}
	before := b.series(t)

	if err := primary.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	b.await(ctx, t, "killed", equals(1), "breaker", "host", "pg-a", "state", "open")
	b.await(ctx, t, "killed", func(s float64) bool { return s > 0 }, "down_seconds")
	for _, test := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"breaker", []string{"state", "closed"}, 0},
		{"primary_info", nil, -1},
	} {
		if got := b.value(t, test.name, test.labels...); got != test.want {
			t.Errorf("killed: %s%q: got %g, want %g", test.name, test.labels, got, test.want)
		}
	}
	b.lint(t)

	do(t, standby, `select pg_promote()`)
	b.await(ctx, t, "promoted", equals(1), "primary_info", "address", second.Host)
	if _, err := s.Exec(ctx, `insert into photos values (2, 'y')`); err != nil {
		t.Fatal(err)
	}
	b.await(ctx, t, "a call has gone through", equals(1), "breaker", "state", "closed")
	if changes, down := b.value(t, "role_changes_total"), b.value(t, "down_seconds"); changes != 1 || down != 0 {
		t.Errorf("promoted: %g role changes, down for %g s", changes, down)
	}
	if after := b.series(t); after > before+1 { // a class of errors, of the call that was lost if one was
		t.Errorf("%d series, %d before", after, before)
	}
}

// A replica stops replaying, and goes on.
func TestReplicaBehind(t *testing.T) {
	t.Parallel()
	primary, standby := startPair(t)
	b, ctx := single(t, shards.Host{Name: "pg-a", DSN: primary.DSN("app"), Replicas: []string{standby.DSN("app")}})
	replica := []string{"host", "pg-a", "replica", "0"}
	if measured, usable := b.value(t, "replicas_measured", "host", "pg-a"), b.value(t, "replica_usable"); measured != 0 || usable != -1 {
		t.Errorf("nobody reads: measured %g, usable %g", measured, usable)
	}
	reader := b.shard(t, 0).ReadOnly(router.Reads{})
	reading := func(want func(float64) bool) func(float64) bool { // it is measured while somebody reads
		return func(got float64) bool {
			var one int
			if err := reader.QueryRow(ctx, `select 1`).Scan(&one); err != nil {
				t.Error(err)
			}
			return want(got)
		}
	}
	b.await(ctx, t, "the replica is used", reading(equals(1)), "replica_usable", replica...)
	b.await(ctx, t, "it is measured", reading(func(lag float64) bool { return lag > 0 && lag < 1 }), "replica_lag_seconds", replica...)
	b.await(ctx, t, "it is read from", reading(func(n float64) bool { return n > 0 }), "replica_reads_total", replica...)
	if conns := b.value(t, "replica_connections", replica...); conns < 1 {
		t.Errorf("%g connections", conns)
	}
	b.lint(t)

	do(t, standby, `select pg_wal_replay_pause()`)
	do(t, primary, `insert into shard_00000.photos values (3, 'z')`)
	onPrimary := b.value(t, "reads_on_primary_total", "host", "pg-a")
	b.await(ctx, t, "it is behind", reading(func(lag float64) bool { return lag > 1 }), "replica_lag_seconds", replica...)
	b.await(ctx, t, "it is behind", reading(equals(0)), "replica_usable", replica...)
	b.await(ctx, t, "the primary is read from", reading(func(n float64) bool { return n > onPrimary }), "reads_on_primary_total", "host", "pg-a")
	do(t, standby, `select pg_wal_replay_resume()`)
	b.await(ctx, t, "it has caught up", reading(equals(1)), "replica_usable", replica...)
}

// Each kind of work over many shards is counted once, and what is not done on all as such.
func TestFanouts(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 4, nil)
	q := many.Query[int64]{SQL: `select id from photos order by id`, Scan: pgx.RowTo[int64]}
	bad := q
	bad.SQL = `select nothing`
	if _, err := many.Collect(ctx, b.Router, b.All(), q); err != nil {
		t.Fatal(err)
	}
	if _, err := many.Collect(ctx, b.Router, b.All(), bad); err == nil {
		t.Fatal("no error")
	}
	for _, err := range many.Merge(ctx, b.Router, b.All(), q, 0, func(x, y int64) bool { return x < y }) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range many.Stream(ctx, b.Router, b.All(), q) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := many.Each(ctx, b.Router, b.All(), many.Options{}, func(context.Context, router.Shard) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string][2]float64{
		"collect": {2, 1}, "merge": {1, 0}, "stream": {1, 0}, "each": {3, 0}, "getmany": {0, 0},
	} {
		done, incomplete := b.value(t, "fanout_seconds", "kind", kind), b.value(t, "fanouts_incomplete_total", "kind", kind)
		if done != want[0] || incomplete != want[1] {
			t.Errorf("%s: %g, of them %g incomplete, want %g", kind, done, incomplete, want)
		}
	}
}
