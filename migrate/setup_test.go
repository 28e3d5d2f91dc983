package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m)))
}

// bundle is a cluster of a test: its shards exist, and hold nothing.
type bundle struct {
	t     testing.TB
	m     *shards.Map
	cfg   migrate.Config
	conns map[string]*pgx.Conn // by host; for the test's own goroutine
}

// setup makes a cluster of so many shards on so many hosts, and a config for the given files,
// which are names and contents in turn.
func setup(t testing.TB, count, hosts int, namesAndContents ...string) *bundle {
	t.Helper()
	return setupOn(t, count, shardtest.Hosts(t, hosts), namesAndContents...)
}

func setupOn(t testing.TB, count int, hosts []shards.Host, namesAndContents ...string) *bundle {
	t.Helper()
	m, err := shardtest.MapConfig(count, hosts).Map()
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, m: m, conns: map[string]*pgx.Conn{}}
	for _, host := range m.Hosts() {
		b.execHost(host, `do $$ begin
			for n in `+fmt.Sprint(m.NumbersOn(host.Name)[0])+` .. `+fmt.Sprint(m.NumbersOn(host.Name)[len(m.NumbersOn(host.Name))-1])+` loop
				execute 'create schema shard_' || lpad(n::text, 5, '0');
				if n % 256 = 0 then commit; end if;
			end loop;
		end $$`)
	}
	b.cfg = migrate.Config{Map: m, Files: files(namesAndContents...)}
	return b
}

// files returns a directory of the given names and contents, in turn.
func files(namesAndContents ...string) fstest.MapFS {
	dir := fstest.MapFS{}
	for i := 0; i+1 < len(namesAndContents); i += 2 {
		dir[namesAndContents[i]] = &fstest.MapFile{Data: []byte(namesAndContents[i+1])}
	}
	return dir
}

func connect(ctx context.Context, host shards.Host) (*pgx.Conn, error) {
	return pgx.Connect(ctx, host.ConnString())
}

func (b *bundle) connect(host shards.Host) *pgx.Conn {
	b.t.Helper()
	conn, err := connect(b.t.Context(), host)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// on returns a connection to the host that the bundle keeps.
func (b *bundle) on(host shards.Host) *pgx.Conn {
	b.t.Helper()
	if b.conns[host.Name] == nil {
		b.conns[host.Name] = b.connect(host)
	}
	return b.conns[host.Name]
}

func (b *bundle) execHost(host shards.Host, sql string) {
	b.t.Helper()
	if _, err := b.on(host).Exec(b.t.Context(), sql); err != nil {
		b.t.Fatal(err)
	}
}

// exec runs statements in one shard.
func (b *bundle) exec(n shards.Number, sql string) {
	b.t.Helper()
	b.execHost(b.m.Host(n), "set search_path = "+b.m.SearchPath(n)+"; "+sql)
}

// value returns the one value of a query in one shard, as text.
func (b *bundle) value(n shards.Number, query string) string {
	b.t.Helper()
	b.exec(n, "")
	var value *string
	row := b.on(b.m.Host(n)).QueryRow(b.t.Context(), "select ("+query+")::text", pgx.QueryExecModeExec)
	if err := row.Scan(&value); err != nil {
		b.t.Fatal(err)
	}
	if value == nil {
		return "null"
	}
	return *value
}

// versions returns the versions of all shards, as their tables have them, 0 without a table.
func (b *bundle) versions() []int32 {
	b.t.Helper()
	status, err := migrate.Status(b.t.Context(), b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	versions := make([]int32, b.m.Len())
	for _, host := range status.Hosts {
		for _, v := range host.Versions {
			for n := range v.Shards.All() {
				versions[n] = v.Version
			}
		}
	}
	return versions
}

func (b *bundle) up() migrate.Report {
	b.t.Helper()
	report, err := migrate.Up(b.t.Context(), b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return report
}

// upFails runs Up, which is to fail on some shards.
func (b *bundle) upFails() (migrate.Report, *shards.PartialError) {
	b.t.Helper()
	report, err := migrate.Up(b.t.Context(), b.cfg)
	var partial *shards.PartialError
	if !errors.As(err, &partial) {
		b.t.Fatalf("Up: got error %v, want a PartialError", err)
	}
	return report, partial
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func set(t testing.TB, text string) shards.Set {
	t.Helper()
	s, err := shards.ParseSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
