package prove_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

const (
	database = "app"

	ownerPassword = "secret"
	waitTime      = 2 * time.Minute // for something that must come true
)

var migrations = fstest.MapFS{
	"001_photos.sql": {Data: []byte(`
create table photos (id bigint primary key default next_id(), title text);
create table likes (photo bigint references photos, who int, primary key (photo, who));
create table events (n serial primary key, what text);`)},
}

// cluster is two servers with two shards each, a third one with the map, and networks between them that can be cut. Shard 1
// has rows, and moves.
type cluster struct {
	t       *testing.T
	servers map[string]*localpg.Server // by the names of the hosts, and store if it is the cluster's own
	store   string                     // the DSN of the map's database
	links   map[string]*link           // such as "mover pg-a", and "pg-a pg-b" for what pg-a asks of pg-b
	direct  mapstore.Store             // as services have it
	mover   mapstore.Store             // as the mover has it: it and its map lead through the links

	owner  string // the role that owns the shards; empty for a superuser
	holder *holder
	files  *int // migrations that were added
}

// hostSettings are those of a host that shards move from and to.
func hostSettings(more map[string]string) map[string]string {
	all := map[string]string{
		"fsync": "off", "shared_buffers": "32MB", "max_connections": "100", "autovacuum": "off",
		"max_prepared_transactions": "5", "wal_level": "logical", "max_replication_slots": "20", "max_wal_senders": "20",
		"max_logical_replication_workers": "10", "max_worker_processes": "16", "wal_retrieve_retry_interval": "100ms",
	}
	maps.Copy(all, more)
	return all
}

// startHost starts a server with a database.
func startHost(t *testing.T, cfg localpg.Config) *localpg.Server {
	t.Helper()
	s := pgtest.Start(t, cfg)
	if _, err := s.CreateDatabase(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a cluster. The config of a host is by its name; the zero value will do.
func start(t *testing.T, configs map[string]localpg.Config) *cluster {
	t.Helper()
	c := &cluster{t: t, servers: map[string]*localpg.Server{}, links: map[string]*link{}, holder: &holder{}, files: new(int)}
	for _, name := range []string{"pg-a", "pg-b", "store"} { // one by one: a skip is for this goroutine
		cfg := configs[name]
		cfg.Settings = hostSettings(cfg.Settings)
		c.servers[name] = startHost(t, cfg)
		c.links["mover "+name] = newLink(t, c.servers[name].DSN(database))
	}
	c.store = c.servers["store"].DSN(database)
	c.links["pg-a pg-b"] = newLink(t, c.servers["pg-b"].DSN(database))
	c.links["pg-b pg-a"] = newLink(t, c.servers["pg-a"].DSN(database))
	c.direct, c.mover = c.open(c.directly), c.open(c.throughLinks)

	c.makeShards(shards.Placement{Host: "pg-a", Shards: shards.SetOf(0, 1)}, shards.Placement{Host: "pg-b", Shards: shards.SetOf(2, 3)})
	return c
}

// makeShards makes the first map, with the hosts of a placement, and what it says. Shard 1 has rows.
func (c *cluster) makeShards(placement ...shards.Placement) {
	t := c.t
	t.Helper()
	count := 0
	for _, p := range placement {
		count += p.Shards.Len()
	}
	config := shards.Config{Cluster: "test", Shards: count, Epoch: shardtest.Epoch, Placement: placement}
	for _, p := range placement {
		config.Hosts = append(config.Hosts, hostOf(p.Host))
	}
	if _, err := c.direct.Swap(t.Context(), 0, mapstore.Change{Config: config, By: "test"}); err != nil {
		t.Fatal(err)
	}
	m := c.load(c.direct)
	if _, err := provision.Create(t.Context(), provision.CreateConfig{Map: m}); err != nil {
		t.Fatal(err)
	}
	if _, err := migrate.Up(t.Context(), migrate.Config{Map: m, Files: migrations}); err != nil {
		t.Fatal(err)
	}
	c.exec("pg-a", `set search_path = shard_00001, pg_temp; insert into photos (title) select 'photo ' || n from generate_series(1, 500) n;
		insert into likes select id, 1 from photos; insert into events (what) select 'x' from generate_series(1, 10)`)
}

func hostOf(name string) shards.Host {
	return shards.Host{Name: name, DSN: "${" + variable(name) + "}"}
}

func variable(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

// on is the cluster for a part of a test.
func (c *cluster) on(t *testing.T) *cluster {
	part := *c
	part.t = t
	return &part
}

// directly and throughLinks return the DSN of a server.
func (c *cluster) directly(name string) string {
	if name == "store" {
		return c.store
	}
	return c.asOwner(name, c.servers[name].DSN(database))
}

func (c *cluster) throughLinks(name string) string {
	return c.asOwner(name, c.links["mover "+name].dsn)
}

func (c *cluster) asOwner(name, dsn string) string {
	if c.owner == "" || name == "store" {
		return dsn
	}
	return localpg.AsRole(dsn, c.owner, ownerPassword)
}

// open opens the store. Its hosts have the DSNs that dsn returns.
func (c *cluster) open(dsn func(name string) string) mapstore.Store {
	c.t.Helper()
	s, err := openStore(c.t.Context(), dsn("store"), func(name string) (string, bool) {
		for host := range c.servers {
			if name == variable(host) {
				return dsn(host), true
			}
		}
		return "", false
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	return s
}

func openStore(ctx context.Context, dsn string, lookup func(string) (string, bool)) (mapstore.Store, error) {
	store := shards.Store{Kind: shards.StorePostgres, DSN: dsn, Variables: []string{"PG_*"}}
	return mapstore.Open(ctx, shards.Config{Cluster: "test", Store: store}, mapstore.Options{Lookup: lookup})
}

func (c *cluster) load(s mapstore.Store) *shards.Map {
	c.t.Helper()
	e, err := s.Load(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return e.Map
}

// home returns the host that shard 1 is on, and the other one.
func (c *cluster) home() (home, other string) {
	c.t.Helper()
	if c.load(c.direct).Host(1).Name == "pg-a" {
		return "pg-a", "pg-b"
	}
	return "pg-b", "pg-a"
}

// config is that of a mover of shard 1, which is on host from. The target logs in through its own link.
func (c *cluster) config(from, to string) move.RunConfig {
	c.t.Helper()
	return move.RunConfig{To: to, Config: move.Config{
		Map: c.load(c.mover), Store: c.mover, Shards: shards.SetOf(1),
		LoginWithPassword: true, Login: "port=" + c.links[to+" "+from].port(),
		Events: func(e progress.Event) { c.t.Logf("%s: %s", e.Step, e.What) },
	}}
}

// connect opens a session past the links, as a superuser.
func (c *cluster) connect(host string) (*pgx.Conn, error) {
	return pgx.Connect(c.t.Context(), c.servers[host].DSN(database))
}

func (c *cluster) try(host, statements string) error {
	conn, err := c.connect(host)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.PgConn().Exec(c.t.Context(), statements).ReadAll()
	return err
}

func (c *cluster) exec(host, statements string) {
	c.t.Helper()
	if err := c.try(host, statements); err != nil {
		c.t.Fatal(err)
	}
}

// text returns the one value of a query, as text.
func (c *cluster) text(host, query string) string {
	c.t.Helper()
	conn, err := c.connect(host)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	results, err := conn.PgConn().Exec(c.t.Context(), query).ReadAll()
	if err != nil {
		c.t.Fatal(err)
	}
	return string(results[len(results)-1].Rows[0][0])
}

// left is what moves may leave on a host. There must be none of it.
const left = `
select 'slot ' || slot_name from pg_replication_slots
union all select 'publication ' || pubname from pg_publication
union all select 'subscription ' || subname from pg_subscription
union all select 'origin ' || roname from pg_replication_origin
union all select 'marker of ' || move from kiloshard.move_markers
union all select 'schema ' || nspname from pg_namespace where nspname like '%\_\_fence\_%'
union all select 'move under way ' || id || ' as ' || side from kiloshard.moves where outcome is null
union all select 'advisory lock of ' || pid from pg_locks where locktype = 'advisory'
union all select 'session ' || pid from pg_stat_activity where application_name like 'kiloshard%move%'`

// served checks that one host serves shard 1, and only it.
func (c *cluster) served(home string) { c.t.Helper(); c.servedShard(1, home) }

func (c *cluster) servedShard(n shards.Number, home string) {
	c.t.Helper()
	for _, host := range []string{"pg-a", "pg-b"} {
		err := c.try(host, fmt.Sprintf(`begin; insert into shard_%05d.photos (title) values ('served'); rollback`, n))
		if (err == nil) != (host == home) {
			c.t.Errorf("a write to shard %d on %s, while it is on %s: %v", n, host, home, err)
		}
	}
}

// whole waits until one host serves shard 1, and only it, and nothing else of its moves is left.
func (c *cluster) whole(home string) {
	c.t.Helper()
	c.served(home)
	for _, host := range []string{"pg-a", "pg-b"} {
		conn, err := c.connect(host)
		if err != nil {
			c.t.Fatal(err)
		}
		defer conn.Close(context.Background())
		var found []string
		c.eventually(func() string { return fmt.Sprintf("%s has %s", host, found) }, func() bool {
			rows, _ := conn.Query(c.t.Context(), left)
			if found, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				c.t.Fatal(err)
			}
			return len(found) == 0
		})
	}
}

// eventually waits for what must come true.
func (c *cluster) eventually(otherwise func() string, true func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(waitTime); !true(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain: %s", otherwise())
		}
	}
}

// clean drops the old schemas.
func (c *cluster) clean() {
	c.t.Helper()
	if _, err := move.Clean(c.t.Context(), c.load(c.direct), shards.Set{}); err != nil {
		c.t.Fatal(err)
	}
	for _, host := range []string{"pg-a", "pg-b"} {
		if found := c.text(host, `select coalesce(string_agg(nspname, ', '), 'none') from pg_namespace where nspname like 'shard\_00001\_%'`); found != "none" {
			c.t.Errorf("%s has old schemas: %s", host, found)
		}
	}
}
