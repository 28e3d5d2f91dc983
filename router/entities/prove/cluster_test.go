package prove_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const (
	shardCount = 8
	database   = "app"
	waitTime   = 20 * time.Minute // for a condition: less than that was too little on a machine with other work
)

var hostNames = []string{"pg-a", "pg-b"}

// cluster is two servers with four shards each, and a third one with the map. The clock of pg-b is tens of seconds ahead, and steps.
type cluster struct {
	t         *testing.T
	dir       string // has a file for each variable of a DSN, and the clock
	servers   map[string]*localpg.Server
	storeDSN  string
	store     mapstore.Store
	r         *router.Router
	entities  *entities.Store
	moves     int
	failovers int
	steps     int
	work      *fleet
}

func start(t *testing.T) *cluster {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(found) == 0 {
		const missing = "libfaketime is missing: install Debian's package libfaketime"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	dir, err := os.MkdirTemp("", "kiloshard-torture-") // other users cannot read those of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the servers run as another user
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir, servers: map[string]*localpg.Server{}}
	c.stepClock()
	for _, name := range append([]string{"store"}, hostNames...) {
		cfg := localpg.Config{Settings: map[string]string{
			"fsync": "off", "shared_buffers": "32MB", "max_connections": "150", "autovacuum": "off",
			"wal_level": "logical", "max_replication_slots": "20", "max_wal_senders": "20",
			"max_logical_replication_workers": "10", "max_worker_processes": "16", "wal_retrieve_retry_interval": "100ms",
		}}
		if name == "pg-b" {
			cfg.Env = []string{
				"LD_PRELOAD=" + found[0], "FAKETIME_TIMESTAMP_FILE=" + c.file("clock"), "FAKETIME_CACHE_DURATION=1",
				"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1",
			}
		}
		c.servers[name] = pgtest.Start(t, cfg)
		if _, err := c.servers[name].CreateDatabase(t.Context(), database); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(c.servers["pg-a"].Describe())
	c.storeDSN = c.servers["store"].DSN(database)
	c.makeShards()
	return c
}

// makeShards makes the map and its shards, with tables for entities, and opens a router.
func (c *cluster) makeShards() {
	c.t.Helper()
	var err error
	if c.store, err = openStore(c.t.Context(), c.storeDSN, c.dir); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = c.store.Close() })
	config := shards.Config{Cluster: "test", Shards: shardCount, Epoch: shardtest.Epoch}
	for i, name := range hostNames {
		config.Hosts = append(config.Hosts, c.host(name))
		first := shards.Number(i * shardCount / 2)
		config.Placement = append(config.Placement, shards.Placement{Host: name, Shards: shards.SetOfRanges(shards.Range{First: first, Last: first + shardCount/2 - 1})})
	}
	if _, err := c.store.Swap(c.t.Context(), 0, mapstore.Change{Config: config, By: "test"}); err != nil {
		c.t.Fatal(err)
	}
	m := c.load()
	if _, err := provision.Create(c.t.Context(), provision.CreateConfig{Map: m}); err != nil {
		c.t.Fatal(err)
	}
	if _, err := migrate.Up(c.t.Context(), migrate.Config{Map: m, Files: fstest.MapFS{"001_entities.sql": {Data: []byte(definition.Migration())}}}); err != nil {
		c.t.Fatal(err)
	}
	if c.r, err = openRouter(c.t.Context(), c.store, "torture test"); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.r.Close)
	if c.entities, err = entities.Open(c.t.Context(), c.r, definition); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// write replaces a file in one step.
func (c *cluster) write(name, text string) {
	c.t.Helper()
	if err := errors.Join(os.WriteFile(c.file(name+".new"), []byte(text), 0o644), os.Rename(c.file(name+".new"), c.file(name))); err != nil { //nolint:gosec // the servers run as another user
		c.t.Fatal(err)
	}
}

// host returns a host, whose DSN has a variable that is new for each failover: its value is in a file of that name.
func (c *cluster) host(name string) shards.Host {
	c.t.Helper()
	variable := fmt.Sprintf("%s_%d", strings.ToUpper(strings.ReplaceAll(name, "-", "_")), c.failovers)
	c.write(variable, c.servers[name].DSN(database))
	return shards.Host{Name: name, DSN: "${" + variable + "}"}
}

func openStore(ctx context.Context, dsn, dir string) (mapstore.Store, error) {
	store := shards.Store{Kind: shards.StorePostgres, DSN: dsn, Variables: []string{"PG_*"}}
	return mapstore.Open(ctx, shards.Config{Cluster: "test", Store: store}, mapstore.Options{Lookup: func(name string) (string, bool) {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		return string(text), err == nil
	}})
}

func (c *cluster) load() *shards.Map {
	c.t.Helper()
	var m *shards.Map
	c.succeeds(func() error {
		e, err := c.store.Load(c.t.Context())
		m = e.Map
		return err
	})
	return m
}

// stepClock sets the clock of pg-b to 10 to 50 s ahead.
func (c *cluster) stepClock() {
	c.t.Helper()
	c.steps++
	c.write("clock", fmt.Sprintf("+%ds", 10+rand.IntN(40)))
}

// moveOne moves a shard to the other host.
func (c *cluster) moveOne() {
	c.t.Helper()
	m := c.load()
	n := shards.Number(rand.IntN(shardCount))
	cfg := move.RunConfig{To: hostNames[1-m.HostIndex(n)], Config: move.Config{Map: m, Store: c.store, Shards: shards.SetOf(n), LoginWithPassword: true}}
	if _, err := move.Run(c.t.Context(), cfg); err != nil {
		c.t.Logf("the move of shard %d to %s is resumed: %v", n, cfg.To, err)
		c.succeeds(func() error {
			cfg.Map, cfg.Shards = c.load(), shards.Set{} // it may not have begun
			_, err := move.Resume(c.t.Context(), cfg.Config)
			return err
		})
	}
	c.succeeds(func() error {
		_, err := move.Clean(c.t.Context(), c.load(), shards.Set{})
		return err
	})
	c.moves++
}

// failOver kills a host while its standby lags, promotes the standby, and has the map lead there. It calls more after the standby
// has received the last of its WAL: what is written then is lost. It returns the shards of the host.
func (c *cluster) failOver(name string, more func()) []shards.Number {
	c.t.Helper()
	old := c.servers[name]
	backup, err := old.Backup(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	standby, err := backup.Standby(c.t.Context(), "standby", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if err := standby.Stop(context.Background()); err != nil {
			c.t.Error(err)
		}
	})
	c.eventually("the standby streams", func() bool {
		return ask[bool](c, standby, `select exists (select from pg_stat_wal_receiver where status = 'streaming')`)
	})
	do(c, standby, `alter system set primary_conninfo = ''`)
	do(c, standby, `select pg_reload_conf()`)
	c.eventually("the standby receives no more", func() bool {
		return ask[bool](c, standby, `select not exists (select from pg_stat_wal_receiver)`)
	})
	has := ask[string](c, standby, `select pg_last_wal_receive_lsn()::text`)
	more()
	if !ask[bool](c, old, `select pg_current_wal_lsn() > '`+has+`'`) {
		c.t.Fatalf("%s has written nothing that its standby lacks: the test proves nothing", name)
	}
	if err := old.Kill(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	if !ask[bool](c, standby, `select pg_promote()`) {
		c.t.Fatal("the standby was not promoted")
	}
	do(c, standby, `alter system reset primary_conninfo`) // its own standby has another one
	c.failovers++
	c.servers[name] = standby
	config := c.load().Config()
	config.Hosts = slices.Clone(config.Hosts)
	i := slices.Index(hostNames, name)
	config.Hosts[i] = c.host(name)
	if _, err := c.store.Swap(c.t.Context(), config.Version, mapstore.Change{Config: config, By: "test"}); err != nil {
		c.t.Fatal(err)
	}
	if err := old.Stop(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return c.load().NumbersOn(name)
}

// gone waits until the sessions of killed processes have ended: a server may run their last statement to its end.
func (c *cluster) gone(application string) {
	c.t.Helper()
	for _, name := range hostNames {
		c.eventually("sessions of "+application+" end", func() bool {
			return ask[bool](c, c.servers[name], `select not exists (select from pg_stat_activity where application_name = '`+application+`')`)
		})
	}
}

// eventually waits for a condition.
func (c *cluster) eventually(what string, is func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(waitTime); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain: %s\n%v\n%s", what, c.work, c.sessions())
		}
	}
}

// sessions says what the sessions of all servers do.
func (c *cluster) sessions() (text string) {
	c.t.Helper()
	for _, name := range hostNames {
		text += name + "\n" + ask[string](c, c.servers[name], `
			select string_agg(format('%s %s since %s waits for %s %s, held by %s: %s', pid, application_name, clock_timestamp() - state_change, wait_event_type, wait_event, pg_blocking_pids(pid), left(query, 200)), e'\n')
			from pg_stat_activity where backend_type in ('client backend', 'walsender')`) + "\n"
	}
	return text
}

// succeeds calls fn until it returns no error: on a busy machine a server may not answer in time.
func (c *cluster) succeeds(fn func() error) {
	c.t.Helper()
	var err error
	for deadline := time.Now().Add(waitTime); ; time.Sleep(20 * time.Millisecond) {
		if err = fn(); err == nil {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal(err)
		}
	}
}

func do(c *cluster, s *localpg.Server, statement string) {
	c.t.Helper()
	_ = one[any](c, s, func(conn *pgx.Conn) (any, error) {
		_, err := conn.Exec(c.t.Context(), statement)
		return nil, err
	})
}

// ask returns the only value of a query.
func ask[T any](c *cluster, s *localpg.Server, query string) T {
	c.t.Helper()
	return one(c, s, func(conn *pgx.Conn) (value T, err error) {
		return value, conn.QueryRow(c.t.Context(), query).Scan(&value)
	})
}

func one[T any](c *cluster, s *localpg.Server, fn func(*pgx.Conn) (T, error)) T {
	c.t.Helper()
	var value T
	c.succeeds(func() error {
		conn, err := pgx.Connect(c.t.Context(), s.DSN(database))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close(context.Background()) }() // it has done its work
		value, err = fn(conn)
		return err
	})
	return value
}
