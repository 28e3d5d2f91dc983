package prove_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// toxiproxy leaves goroutines behind when a toxic is taken off a connection that is in use.
func TestMain(m *testing.M) {
	localpg.IgnoreEnvironment()
	os.Exit(leak.Check(m.Run(),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write")))
}

const (
	database   = "app"
	shardCount = 4 // of each host
	testLimit  = 5 * time.Minute
)

// tables makes the shards of a host, each with a ledger of one row, 0.
func tables() string {
	var sql strings.Builder
	for n := range 2 * shardCount {
		fmt.Fprintf(&sql, `create schema shard_%05[1]d; create table shard_%05[1]d.ledger (id bigint primary key, note text);
insert into shard_%05[1]d.ledger values (0, 'first');`, n)
	}
	return sql.String()
}

// start starts a server with the tables.
func start(t *testing.T) *localpg.Server {
	t.Helper()
	s := shardtest.OwnServer(t)
	dsn, err := s.CreateDatabase(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	do(t, dsn, tables())
	return s
}

// pair is a primary with its synchronous standby.
type pair struct{ primary, standby *localpg.Server }

func startPair(t *testing.T) pair {
	t.Helper()
	p := pair{primary: start(t)}
	p.standby = shardtest.Standby(t, p.primary, "standby")
	do(t, p.primary.DSN(database), `alter system set synchronous_standby_names = 'standby'`)
	do(t, p.primary.DSN(database), `select pg_reload_conf()`)
	eventually(t, "the standby is synchronous", func() bool {
		return ask[bool](t, p.primary.DSN(database), `select exists (select from pg_stat_replication where sync_state = 'sync')`)
	})
	return p
}

// dsn names all servers, in this order.
func dsn(t *testing.T, servers ...*localpg.Server) string {
	t.Helper()
	var first *url.URL
	var hosts []string
	for _, s := range servers {
		u, err := url.Parse(s.DSN(database))
		if err != nil {
			t.Fatal("a server's DSN is no URL")
		}
		if first == nil {
			first = u
		}
		hosts = append(hosts, u.Host)
	}
	first.Host = strings.Join(hosts, ",")
	return first.String()
}

// address returns host and port of a server.
func address(t *testing.T, s *localpg.Server) string {
	t.Helper()
	u, err := url.Parse(s.DSN(database))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	return u.Host
}

// open returns a router over hosts with four shards each. Unless cfg says otherwise hosts may be silent, and calls wait for
// a primary, for as long as a test takes.
func open(t *testing.T, cfg router.Config, dsns ...string) *router.Router {
	t.Helper()
	config := shards.Config{Cluster: "test", Shards: shardCount * len(dsns), Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	for i, dsn := range dsns {
		config.Hosts = append(config.Hosts, shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: dsn})
	}
	config.Placement = shards.Evenly(config.Shards, config.Hosts)
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Map = m
	if cfg.Failover.FailAfter == 0 { // a host that is not to be found silent may be, on a machine that is busy
		cfg.Failover.FailAfter = testLimit
	}
	if cfg.Failover.Wait == 0 {
		cfg.Failover.Wait = testLimit
	}
	if cfg.Pool == nil {
		cfg.Pool = func(_ shards.Host, cfg *pgxpool.Config) error { cfg.MaxConns = 6; return nil }
	}
	r, err := router.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func shard(t *testing.T, r *router.Router, n int) router.Shard {
	t.Helper()
	s, err := r.ForShard(shards.Number(n))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// do runs a script past the router.
func do(t *testing.T, dsn, script string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.PgConn().Exec(t.Context(), script).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// ask returns the only value that a query gives past the router.
func ask[T any](t *testing.T, dsn, query string) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// eventually waits for something that must come true.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(testLimit)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stats returns the figures of a host.
func stats(r *router.Router, host int) router.HostStats { return r.Stats()[host] }

// isDown waits until the breaker of a host is open.
func isDown(t *testing.T, r *router.Router, host int) {
	t.Helper()
	eventually(t, "the breaker is open", func() bool { return stats(r, host).Breaker == router.BreakerOpen })
}

const (
	insert    = `insert into ledger values ($1, $2)`
	selection = `select note from ledger where id = $1`
)

// write adds a row to the ledger of a shard.
func write(ctx context.Context, s router.Shard, id int64) error {
	_, err := s.Exec(ctx, insert, id, s.String())
	return err
}

// read reads the first row of the ledger of a shard.
func read(ctx context.Context, s router.Shard) error {
	var note string
	err := s.QueryRow(ctx, selection, 0).Scan(&note)
	if err == nil && note != "first" {
		return fmt.Errorf("got %q", note)
	}
	return err
}

// log is a logger's output.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// count returns how many lines have a text.
func (l *log) count(text string) int { return strings.Count(l.String(), text) }
