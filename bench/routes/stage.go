package routes

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/bench/internal/network"
	"github.com/kiloshard/kiloshard/bench/internal/server"
	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// stage is where a part measures. It has the routers and pools that the part opens, until close.
type stage struct {
	cfg    Config
	report *Report
	part   string
	opened []func() // closes what was opened, in order
}

// progress reports what the part measures next.
func (s *stage) progress(format string, args ...any) {
	s.cfg.Progress(s.part + ", " + fmt.Sprintf(format, args...))
}

// closeLater has close call fn.
func (s *stage) closeLater(fn func()) { s.opened = append(s.opened, fn) }

// close closes what was opened, the last first.
func (s *stage) close() {
	for _, fn := range slices.Backward(s.opened) {
		fn()
	}
	s.opened = nil
}

// hosts makes two hosts.
func (s *stage) hosts(ctx context.Context) ([]shards.Host, error) {
	hosts, err := s.cfg.NewHosts(ctx)
	if err != nil {
		return nil, err
	}
	if len(hosts) != 2 {
		return nil, fmt.Errorf("%d hosts: expected 2", len(hosts))
	}
	s.report.Server, s.report.Fsync, err = server.Version(ctx, hosts[0])
	return hosts, err
}

// cluster creates shards, evenly on one or two new hosts.
func (s *stage) cluster(ctx context.Context, count, hostCount int) (*shards.Map, error) {
	hosts, err := s.hosts(ctx)
	if err != nil {
		return nil, err
	}
	m, err := server.Config(count, hosts[:hostCount]).Map()
	if err != nil {
		return nil, err
	}
	return m, createShards(ctx, m)
}

// far returns the map with a network between this program and the hosts that delays each way; 0 for none.
func (s *stage) far(m *shards.Map, delay time.Duration) (*shards.Map, error) {
	if delay == 0 {
		return m, nil
	}
	far, err := network.Open(m.Hosts(), delay)
	if err != nil {
		return nil, err
	}
	s.closeLater(far.Close)
	return far.Through(m)
}

// The application_name of each side's sessions.
const (
	oursName  = "kiloshard bench route ours"
	plainName = "kiloshard bench route plain"
)

// failAfter is how long a host may be silent before a router considers it down: no host fails here, and one that starts
// many sessions at once on a busy machine may not answer a probe in time.
const failAfter = 30 * time.Second

// router opens a router.
func (s *stage) router(ctx context.Context, m *shards.Map) (*router.Router, error) {
	return s.routerWith(ctx, m, router.Config{})
}

// routerWith opens a router with a config whose map and failover it sets.
func (s *stage) routerWith(ctx context.Context, m *shards.Map, cfg router.Config) (*router.Router, error) {
	hosts := slices.Clone(m.Hosts())
	for i, host := range hosts {
		hosts[i].DSN = poolDSN(host.ConnString(), oursName, connsPerHost)
	}
	m, err := server.On(m, hosts)
	if err != nil {
		return nil, err
	}
	cfg.Map, cfg.Failover.FailAfter = m, failAfter
	r, err := router.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.closeLater(r.Close)
	return r, nil
}

// pool opens a pgxpool, whose sessions have an application_name. Settings are names and values in turn.
func (s *stage) pool(ctx context.Context, host shards.Host, name string, conns int, settings ...string) (*pgxpool.Pool, error) {
	pool, err := pgxpool.New(ctx, dsn.With(poolDSN(host.ConnString(), name, conns), settings...))
	if err != nil {
		return nil, err
	}
	s.closeLater(pool.Close)
	return pool, nil
}

func poolDSN(text, name string, conns int) string {
	return dsn.With(text, "application_name", name, "pool_max_conns", fmt.Sprint(conns))
}
