package router_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// replicated is a primary that all tests about replicas share, each with standbys of its own, and two standbys for those
// that do them no harm.
var replicated = sync.OnceValues(func() (*replicatedServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	s := &replicatedServer{}
	primary, err := localpg.Start(ctx, localpg.Config{Source: localpg.Local, Settings: map[string]string{
		"max_wal_senders": "20", "max_connections": "200", "wal_keep_size": "512MB", "hot_standby_feedback": "on",
	}})
	if err != nil {
		return nil, err
	}
	s.add(primary)
	dsn, err := primary.CreateDatabase(ctx, "app")
	if err != nil {
		return s, err
	}
	m, err := shardtest.MapConfig(readShards, []shards.Host{{Name: "pg-a", DSN: dsn}}).Map()
	if err != nil {
		return s, err
	}
	if _, err := provision.Create(ctx, provision.CreateConfig{Map: m}); err != nil {
		return s, err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return s, err
	}
	defer conn.Close(ctx)
	var sql strings.Builder
	for n := range readShards {
		fmt.Fprintf(&sql, `create table %[1]s.photos (id bigint primary key, owner bigint, title text);
insert into %[1]s.photos select i, %[2]d, 'of shard %[2]d' from generate_series(1, 8) as i;
create function %[1]s.add_photo(photo bigint) returns bigint language sql volatile as
$$insert into %[1]s.photos values (photo, -1, 'smuggled') returning id$$;
`, m.Schema(shards.Number(n)), n)
	}
	if _, err := conn.Exec(ctx, sql.String()); err != nil {
		return s, err
	}
	s.harmless = make([]*localpg.Server, 2)
	for i := range s.harmless {
		if s.harmless[i], err = s.standby(ctx, fmt.Sprint("harmless", i)); err != nil {
			return s, err
		}
	}
	return s, nil
})

const readShards = 8

type replicatedServer struct {
	harmless []*localpg.Server

	mu  sync.Mutex
	all []*localpg.Server // the primary first
}

func (s *replicatedServer) add(server *localpg.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, server)
}

func (s *replicatedServer) primary() *localpg.Server { return s.all[0] }

func (s *replicatedServer) standby(ctx context.Context, name string) (*localpg.Server, error) {
	backup, err := s.primary().Backup(ctx)
	if err != nil {
		return nil, err
	}
	standby, err := backup.Standby(ctx, name, map[string]string{"wal_receiver_status_interval": "1s", "max_standby_streaming_delay": "1s"})
	if err != nil {
		return nil, errors.Join(err, backup.Remove(ctx))
	}
	s.add(standby)
	return standby, nil
}

// stopReplicated stops what replicated has started.
func stopReplicated(ctx context.Context) error {
	if !replicatedUsed {
		return nil
	}
	s, _ := replicated()
	if s == nil {
		return nil
	}
	var errs []error
	for i := len(s.all) - 1; i >= 0; i-- {
		errs = append(errs, s.all[i].Stop(ctx))
	}
	return errors.Join(errs...)
}

var replicatedUsed bool // written before the first test that uses it runs on

// readBundle is a router over a primary and its replicas, which are servers.
type readBundle struct {
	*router.Router
	plain *pgxpool.Pool // on the primary
}

// withReplicas returns a router over the primary and these DSNs of replicas; without any those of the harmless standbys.
func withReplicas(t testing.TB, opts options, replicas ...string) (*readBundle, context.Context) {
	t.Helper()
	servers := theReplicated(t)
	if len(replicas) == 0 {
		for _, standby := range servers.harmless {
			replicas = append(replicas, standby.DSN("app"))
		}
	}
	return withReplicasOf(t, servers.primary(), opts, replicas...)
}

// withReplicasOf returns a router over another primary.
func withReplicasOf(t testing.TB, primary *localpg.Server, opts options, replicas ...string) (*readBundle, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	t.Cleanup(cancel)
	for i := range replicas {
		replicas[i] = opts.apply(t, replicas[i])
	}
	host := shards.Host{Name: "pg-a", DSN: opts.apply(t, primary.DSN("app")), Replicas: replicas}
	m, err := shardtest.MapConfig(readShards, []shards.Host{host}).Map()
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{Map: m, NoGroups: opts.alone, Tracers: opts.tracers, Logger: opts.logger, Failover: patient, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = max(opts.conns, 4)
		if opts.pool != nil {
			opts.pool(cfg)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &readBundle{Router: r, plain: openPlain(ctx, t, primary.DSN("app"))}, ctx
}

var replicatedLock sync.Mutex

func theReplicated(t testing.TB) *replicatedServer {
	t.Helper()
	replicatedLock.Lock()
	replicatedUsed = true
	replicatedLock.Unlock()
	servers, err := replicated()
	if errors.Is(err, localpg.ErrUnavailable) {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("standbys need server binaries on this machine: install Debian's package postgresql: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return servers
}

// newStandby starts a standby for a test that harms it.
func newStandby(t testing.TB, servers *replicatedServer, name string) *localpg.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testLimit)
	defer cancel()
	standby, err := servers.standby(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := standby.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return standby
}

func (b *readBundle) shard(t testing.TB, n int) router.Shard {
	t.Helper()
	s, err := b.ForShard(shards.Number(n))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *readBundle) replica(i int) router.ReplicaStats { return b.ReadStats()[0].Replicas[i] }

// await reads until the statistics are as wanted.
func (b *readBundle) await(ctx context.Context, t testing.TB, what string, wanted func(router.ReadStats) bool) {
	t.Helper()
	reader := b.shard(t, 0).ReadOnly(router.Reads{})
	for !wanted(b.ReadStats()[0]) {
		var one int
		if err := reader.QueryRow(ctx, `select 1`).Scan(&one); err != nil {
			t.Fatalf("%s never came; %+v: %v", what, b.ReadStats(), err)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s never came; %+v", what, b.ReadStats())
		case <-time.After(time.Millisecond):
		}
	}
}

// awaitAll waits until all replicas are used.
func (b *readBundle) awaitAll(ctx context.Context, t testing.TB) {
	t.Helper()
	b.await(ctx, t, "all replicas", func(s router.ReadStats) bool {
		for _, r := range s.Replicas {
			if !r.Used {
				return false
			}
		}
		return true
	})
}

// freeze has a server hang until the returned function is called.
func freeze(t testing.TB, server *localpg.Server) (thaw func()) {
	t.Helper()
	if err := server.Freeze(context.Background()); err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := server.Thaw(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// on runs SQL on a server past the router.
func on(ctx context.Context, t testing.TB, server *localpg.Server, sql string) {
	t.Helper()
	onHost(ctx, t, server.DSN("app"), sql)
}

// withReplica adds a replica to the first host.
func withReplica(dsn string) func(*shards.Config) {
	return func(c *shards.Config) { c.Hosts[0].Replicas = []string{dsn} }
}
