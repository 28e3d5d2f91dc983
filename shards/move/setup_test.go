package move_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	*move.LockWait = 5 * time.Second
	os.Exit(leak.Check(shardtest.Run(m)))
}

var migrations = fstest.MapFS{
	"001_photos.sql": {Data: []byte(`
create type mood as enum ('glad', 'sad');
create table photos (id bigint primary key default next_id(), title text, mood mood, note jsonb);
create index on photos (title);
comment on table photos is 'what users have made';
create table likes (photo bigint references photos, who int, primary key (photo, who));
create table events (n serial primary key, what text) with (autovacuum_vacuum_scale_factor = 0.1);
create view glad as select * from photos where mood = 'glad';`)},
}

// bundle is a cluster of four shards on two hosts, with its map in a file.
type bundle struct {
	t     testing.TB
	m     *shards.Map
	path  string // of the map
	store mapstore.Store
	cfg   move.RunConfig
}

func setup(t testing.TB) *bundle {
	t.Helper()
	return setupOn(t, shardtest.New(t, shardtest.Config{Shards: 4, Migrations: migrations}).Map.Config())
}

// setupOn is a bundle of the hosts and shards of a config, which it makes nothing on.
func setupOn(t testing.TB, config shards.Config) *bundle {
	t.Helper()
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	lookup := func(name string) (string, bool) {
		for _, h := range m.Hosts() {
			if name == variable(h) {
				return h.ConnString(), true
			}
		}
		return "", false
	}
	c := m.Config()
	c.Hosts = nil
	for _, h := range m.Hosts() {
		c.Hosts = append(c.Hosts, shards.Host{Name: h.Name, DSN: "${" + variable(h) + "}"})
	}
	store, err := mapstore.Open(t.Context(), shards.Config{Cluster: c.Cluster}, mapstore.Options{Path: path, Lookup: lookup})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if _, err := store.Swap(t.Context(), 0, mapstore.Change{Config: c, By: "test"}); err != nil {
		t.Fatal(err)
	}
	b := &bundle{t: t, path: path, store: store}
	b.cfg = move.RunConfig{To: "pg-b", Config: move.Config{Map: b.load(), Store: store, Shards: shards.SetOf(1), LoginWithPassword: true}}
	if shardtest.ServerConfig().Source == localpg.Docker { // the server knows itself by another address than we do
		b.cfg.Login = b.text(0, `select format('host=%s port=%s', host(inet_server_addr()), inet_server_port())`)
	}
	if s, ok := t.(*testing.T); ok {
		b.cfg.Events = func(e progress.Event) { s.Logf("shard %d, %s: %s", e.Shard, e.Step, e.What) }
	}
	return b
}

// keeping is the part of a config that keeps ways back.
func keeping(cfg move.RunConfig) move.KeepConfig {
	return move.KeepConfig{Map: cfg.Map, Shards: cfg.Shards, Events: cfg.Events, Logger: cfg.Logger}
}

// rollback rolls shards back, with the part of a config that this takes.
func rollback(ctx context.Context, cfg move.RunConfig) (move.Report, error) {
	return move.Rollback(ctx, cfg.Config)
}

// makeShards makes the shards of the map, with tables.
func (b *bundle) makeShards() {
	b.t.Helper()
	if _, err := provision.Create(b.t.Context(), provision.CreateConfig{Map: b.m}); err != nil {
		b.t.Fatal(err)
	}
	if _, err := migrate.Up(b.t.Context(), migrate.Config{Map: b.m, Files: migrations}); err != nil {
		b.t.Fatal(err)
	}
}

func variable(h shards.Host) string { return strings.ToUpper(strings.ReplaceAll(h.Name, "-", "_")) }

// load returns the newest map.
func (b *bundle) load() *shards.Map {
	b.t.Helper()
	e, err := b.store.Load(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.m = e.Map
	return e.Map
}

func (b *bundle) exec(host int, statements string) {
	b.t.Helper()
	if err := b.try(host, statements); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) try(host int, statements string) error {
	b.t.Helper()
	conn := b.connect(host)
	defer conn.Close(context.Background())
	_, err := conn.PgConn().Exec(b.t.Context(), statements).ReadAll()
	return err
}

func connectLater(host shards.Host) (*pgx.Conn, error) {
	return pgx.Connect(context.Background(), host.ConnString())
}

func (b *bundle) connect(host int) *pgx.Conn {
	b.t.Helper()
	conn, err := pgx.Connect(b.t.Context(), b.m.Hosts()[host].ConnString())
	if err != nil {
		b.t.Fatal(err)
	}
	return conn
}

// text returns the one value of a query on a host, as text.
func (b *bundle) text(host int, query string) string {
	b.t.Helper()
	conn := b.connect(host)
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(b.t.Context(), query).ReadAll()
	if err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return string(results[len(results)-1].Rows[0][0])
}

func (b *bundle) equal(what, got, want string) {
	b.t.Helper()
	if got != want {
		b.t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// clean checks that a move has left nothing on any host.
func (b *bundle) clean() {
	b.t.Helper()
	for host := range b.m.Hosts() {
		b.equal("slots", b.text(host, `select count(*) from pg_replication_slots where database = current_database()`), "0")
		b.equal("publications", b.text(host, `select count(*) from pg_publication`), "0")
		b.equal("subscriptions", b.text(host, `select count(*) from pg_subscription where subdbid = (select oid from pg_database where datname = current_database())`), "0")
		b.equal("markers", b.text(host, `select count(*) from kiloshard.move_markers`), "0")
		b.equal("fences to be", b.text(host, `select count(*) from pg_namespace where nspname like '%__fence_%'`), "0")
		b.equal("moves under way", b.text(host, `select count(*) from kiloshard.moves where outcome is null`), "0")
		b.equal("locks", b.text(host, `select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`), "0")
	}
}

func other(host string) string {
	if host == "pg-a" {
		return "pg-b"
	}
	return "pg-a"
}

// served checks that shard 1 takes writes on one host and none on the other.
func (b *bundle) served(home, when string) {
	b.t.Helper()
	for i, h := range b.m.Hosts() {
		err := b.try(i, `begin; insert into shard_00001.photos (title) values ('served'); rollback`)
		if (err == nil) != (h.Name == home) {
			b.t.Errorf("at %s: a write on %s, while the shard is on %s: %v", when, h.Name, home, err)
		}
	}
}

// routed returns shard 1 by way of a router of its own, which follows the map.
func (b *bundle) routed(t *testing.T) router.Shard {
	t.Helper()
	r, err := router.New(t.Context(), router.Config{Maps: mapstore.NewSource(mapstore.SourceConfig{Store: b.store})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s, err := r.ForShard(1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
