package many_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// photo is a row of the table photos.
type photo struct {
	ID    shards.ID
	Owner int64
	Title string
}

// photosOf returns a query for photos in the order of their IDs.
func photosOf(where string, args ...any) many.Query[photo] {
	return many.Query[photo]{
		SQL:  `select id, owner, title from photos where ` + where + ` order by id`,
		Args: args,
		Scan: pgx.RowToStructByName[photo],
	}
}

// fill replaces the photos of all shards with rows whose IDs are the shard's: none in every eighth shard, up to 15 in the
// others. There are few owners, so many rows have the same one. It returns the rows by shard, in the order of IDs.
func (b *testBundle) fill(ctx context.Context, t testing.TB) [][]photo {
	t.Helper()
	all := make([][]photo, shardCount)
	for host, dsn := range b.dsns {
		var sql strings.Builder
		for _, n := range b.Map().NumbersOn(b.Map().Hosts()[host].Name) {
			fmt.Fprintf(&sql, "truncate %s.photos;\n", b.Map().Schema(n))
			for i := range int(n) % 8 * 15 / 7 {
				ms := int64((i*shardCount+int(n)*37)%971 + 1000*i)
				id, err := b.Map().Layout().Compose(shards.Parts{Milliseconds: ms, Shard: n, Sequence: int64(i)})
				if err != nil {
					t.Fatal(err)
				}
				p := photo{id, int64(i*i+int(n)) % 5, fmt.Sprintf("photo %d of shard %d", i, n)}
				fmt.Fprintf(&sql, "insert into %s.photos values (%d, %d, '%s');\n", b.Map().Schema(n), p.ID, p.Owner, p.Title)
				all[n] = append(all[n], p)
			}
		}
		if err := onHost(ctx, dsn, sql.String()); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// isFree fails the test unless each host has a free connection.
func (b *testBundle) isFree(ctx context.Context, t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // as in allFree
	defer cancel()
	if err := b.Ping(ctx); err != nil {
		t.Errorf("a connection is still in use: %v", err)
	}
}

// isHostError fails the test unless an error is about a host, without its password.
func isHostError(t *testing.T, err error, host string) {
	t.Helper()
	var hostErr *shards.HostError
	if !errors.As(err, &hostErr) || hostErr.Host != host {
		t.Errorf("got %v, want a HostError about %s", err, host)
	}
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, "s3cret") {
		t.Errorf("the password is in %s", text)
	}
}

// eventually waits for a condition.
func eventually(ctx context.Context, t *testing.T, what func() bool) {
	t.Helper()
	for !what() {
		select {
		case <-ctx.Done():
			t.Fatal("the condition did not hold in time")
		case <-time.After(time.Millisecond):
		}
	}
}

// lock locks the photos of some shards of the first host until the caller releases it, or the test ends.
func (b *testBundle) lock(ctx context.Context, t testing.TB, numbers ...shards.Number) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(ctx, b.dsns[0])
	if err != nil {
		t.Fatal("connect to a host")
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	var sql strings.Builder
	sql.WriteString("begin;")
	for _, n := range numbers {
		fmt.Fprintf(&sql, "lock %s.photos in access exclusive mode;", b.Map().Schema(n))
	}
	if _, err := conn.Exec(ctx, sql.String()); err != nil {
		t.Fatal(err)
	}
	return func() { _ = conn.Close(ctx) }
}

// awaitWaiting waits until the given number of sessions of the first host wait for a lock.
func (b *testBundle) awaitWaiting(ctx context.Context, t testing.TB, sessions int) {
	t.Helper()
	for waiting := -1; waiting != sessions; {
		const query = `select count(distinct pid) from pg_locks
			where not granted and database = (select oid from pg_database where datname = current_database())`
		if err := b.plain.QueryRow(ctx, query).Scan(&waiting); err != nil {
			t.Fatalf("expected %d sessions that wait for a lock, found %d: %v", sessions, waiting, err)
		}
	}
}

// allFree fails the test unless all connections to each host are free.
func (b *testBundle) allFree(ctx context.Context, t testing.TB, conns int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // pgx takes up to 15 s to end a canceled statement
	defer cancel()
	for _, host := range b.Map().Hosts() {
		for range conns {
			tx, err := b.shard(t, int(b.Map().NumbersOn(host.Name)[0])).Begin(ctx)
			if err != nil {
				t.Fatalf("a connection to %s is still in use: %v", host.Name, err)
			}
			defer func() { _ = tx.Rollback(ctx) }()
		}
	}
}

// outcome is a PartialError under test.
type outcome shards.PartialError

func (o *outcome) String() string { return (*shards.PartialError)(o).Error() }

// partial returns the PartialError in err. It fails the test unless the error lists each shard of the set exactly once.
func partial(t testing.TB, err error, set shards.Set) *outcome {
	t.Helper()
	var inner *shards.PartialError
	if !errors.As(err, &inner) {
		t.Fatalf("got %v, want a PartialError", err)
	}
	p := (*outcome)(inner)
	all := slices.Concat(slices.Collect(p.Done.All()), failed(p), slices.Collect(p.NotAttempted.All()))
	slices.Sort(all)
	if want := slices.Collect(set.All()); !slices.Equal(all, want) {
		t.Errorf("%v is about the shards %v, want each of %v once", p, all, want)
	}
	if !slices.IsSorted(failed(p)) {
		t.Errorf("failed in the order %v", failed(p))
	}
	return p
}

// isPartial fails the test unless err lists these shards, in the notation of [shards.Set].
func isPartial(t testing.TB, err error, set shards.Set, done, failure, left string) *outcome {
	t.Helper()
	p := partial(t, err, set)
	got := fmt.Sprintf("done %s, failed %s, left %s", p.Done, shards.SetOf(failed(p)...), p.NotAttempted)
	if want := fmt.Sprintf("done %s, failed %s, left %s", done, failure, left); got != want {
		t.Errorf("got %s, want %s: %v", got, want, p)
	}
	return p
}

func failed(p *outcome) (numbers []shards.Number) {
	for _, f := range p.Failed {
		numbers = append(numbers, f.Shard)
	}
	return numbers
}

func sqlState(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

// parse parses a set.
func parse(t testing.TB, text string) shards.Set {
	t.Helper()
	set, err := shards.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// rowsOf returns the rows of the shards of a set, flat.
func rowsOf(all [][]photo, set shards.Set) (rows []photo) {
	for n := range set.All() {
		rows = append(rows, all[n]...)
	}
	return rows
}

// withDeadHost returns a cluster whose second host does not answer.
func withDeadHost(t testing.TB, opts options) (*testBundle, context.Context) {
	t.Helper()
	opts.on, _ = setup(t, options{})
	opts.on.dsns = append(opts.on.dsns, "postgres://app:s3cret@127.0.0.1:1/app?connect_timeout=5")
	return setup(t, opts)
}

// withOwnServer returns a cluster whose second host is a server that the test may kill.
func withOwnServer(t testing.TB) (*testBundle, context.Context, *localpg.Server) {
	t.Helper()
	cfg := shardtest.ServerConfig()
	if cfg.DSN != "" {
		t.Skip("this test kills its server: unset KILOSHARD_POSTGRES_DSN and install Postgres or Docker")
	}
	own, err := localpg.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b, ctx := setup(t, options{})
	var sql strings.Builder
	for n := range shards.Number(shardCount) {
		fmt.Fprintf(&sql, "create schema %[1]s; create table %[1]s.photos (id bigint primary key, owner bigint, title text);", b.Map().Schema(n))
	}
	if err := onHost(ctx, own.DSN("postgres"), sql.String()); err != nil {
		t.Fatal(err)
	}
	b.dsns = append(b.dsns, own.DSN("postgres"))
	b, ctx = setup(t, options{on: b})
	return b, ctx, own
}

// same reports whether two errors are identical.
func same(err, want error) bool { return err == want } //nolint:errorlint // see above
