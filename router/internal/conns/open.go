package conns

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router/internal/primary"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// Config says how the connections of a host are made and used.
type Config struct {
	Host       shards.Host
	Pool       *pgxpool.Config // is changed
	Login      *connect.Login
	Statements int  // kept prepared on each connection
	NoGroups   bool // every statement is sent by itself
	FailAfter  time.Duration
	Wait       time.Duration
	DownError  func(since time.Time, cause error) error // makes the error of requests that are not sent because the host is down
	Tracers    []pgx.QueryTracer                        // after one in the pool's config
	Slow       time.Duration                            // from which on an operation is logged, 0 for never
	Logger     *slog.Logger

	// TextsOf has what the host of a replica knows of the texts. It is nil for a primary.
	TextsOf *texts.Cache

	// ServerOf returns which server of a replica a connection leads to. It is nil for a primary.
	ServerOf func(context.Context, *pgconn.PgConn) (string, error)

	// AwaitMove waits for a map in which a shard that is not on this host has another one, and reports whether there is one.
	// It may be nil.
	AwaitMove func(context.Context, *Shard) bool
}

// Open makes the pool of a host. It does not connect.
func Open(ctx context.Context, cfg Config) (*Pool, error) {
	pool := cfg.Pool
	var all []pgx.QueryTracer
	if own := pool.ConnConfig.Tracer; own != nil {
		all = append(all, own)
	}
	all = append(all, cfg.Tracers...)
	if cfg.Slow > 0 {
		all = append(all, tracers.SlowLog(cfg.Logger, cfg.Slow))
	}
	p := &Pool{
		Host: &session.Host{
			Name:         cfg.Host.Name,
			Mode:         pool.ConnConfig.DefaultQueryExecMode,
			Statements:   cfg.Statements,
			Trace:        tracers.Of(all),
			Log:          cfg.Logger,
			Texts:        texts.NewCache(cfg.TextsOf),
			AfterConnect: pool.AfterConnect,
			ServerOf:     cfg.ServerOf,
		},
		login:        cfg.Login,
		noGroups:     cfg.NoGroups,
		awaitMove:    cfg.AwaitMove,
		ended:        make(chan struct{}),
		resendBudget: resendBurst,
	}
	p.open, p.shut = context.WithCancel(context.WithoutCancel(ctx))
	p.ReadOnly = func() { p.primary.Refused() }
	p.CancelBy = p.cancelBy
	if err := session.CheckMode(p.Mode); err != nil {
		return nil, fmt.Errorf("default_query_exec_mode: %w", err)
	}
	pool.ConnConfig.Tracer = p.Trace.Tracer()
	// What pgx sends by itself it describes each time: CopyFrom would else encode for columns as they were once.
	pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec
	if p.Mode == pgx.QueryExecModeExec {
		pool.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	p.Place.Store(&cfg.Host)
	session.WatchLeaving(&pool.ConnConfig.Config)
	p.takeHooks(pool)
	p.Keeps = p.shares
	p.knowPooler(pool)
	p.login.Attend(pool)
	p.primary = p.newWatch(pool, cfg)
	opened := make(chan struct{}) // a pool with a least number of connections makes them as soon as it is there
	before := pool.BeforeConnect
	pool.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		<-opened
		return before(ctx, c)
	}
	p.idleLimit, p.period = pool.MaxConnIdleTime, pool.HealthCheckPeriod
	for range pool.MaxConns {
		p.all = append(p.all, &lane{Pool: p, known: map[shards.Number]struct{}{}})
	}
	p.Expect(0)
	var err error
	if p.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	close(opened)
	p.Log.Info("host opened", slog.String("host", p.Name), slog.String("address", cfg.Host.Address()), slog.Int("connections", len(p.all)))
	return p, nil
}

// LookForPrimary looks for the primary at once, see [primary.Watch.LookAgain].
func (p *Pool) LookForPrimary() { p.primary.LookAgain() }

// newWatch has the connections of a pool go where the primary is.
func (p *Pool) newWatch(pool *pgxpool.Config, cfg Config) *primary.Watch {
	w := primary.New(primary.Config{
		Host: p.Name, Conn: pool.ConnConfig, Any: cfg.ServerOf != nil, BeforeConnect: pool.BeforeConnect, Try: p.login.Try,
		FailAfter: cfg.FailAfter, Wait: cfg.Wait, DownError: cfg.DownError, Logger: p.Log,
		Busy: p.hasRequests, Pooled: p.Pooled.Load,
		Down: func(why error) {
			p.markDown(why)
			p.pool.Reset()
		},
		Up: p.markUp,
		Moved: func() {
			p.renew()
			p.pool.Reset()
		},
	})
	pool.BeforeConnect = w.BeforeConnect
	return w
}

// takeHooks takes over what a pool does with each use of a connection: the pool itself gives a connection out once.
func (p *Pool) takeHooks(config *pgxpool.Config) {
	p.lifetime, p.jitter = config.MaxConnLifetime, config.MaxConnLifetimeJitter
	if p.lifetime <= 0 {
		p.lifetime = forever
	}
	p.afterRelease = config.AfterRelease
	p.prepareConn = config.PrepareConn
	if before := config.BeforeAcquire; before != nil && p.prepareConn == nil { //nolint:staticcheck // deprecated, and still in use
		p.prepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) { return before(ctx, conn), nil }
	}
	p.shares = p.prepareConn == nil && p.afterRelease == nil
	config.PrepareConn, config.AfterRelease = nil, nil
	config.BeforeAcquire = nil //nolint:staticcheck // deprecated, and still in use
}

// knowPooler has new connections prepare nothing once it is known that there is a pooler.
func (p *Pool) knowPooler(config *pgxpool.Config) {
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if p.Pooled.Load() {
			c.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		if before == nil {
			return nil
		}
		return before(ctx, c)
	}
}

// knownMore is for how many times the shards that it is meant for a connection may have worked.
const knownMore = 8

const forever = 100 * 365 * 24 * time.Hour

// Expect says how many shards the host has. A connection that has worked for many more than it is meant for is replaced:
// what Postgres knows of a schema stays in the session's memory.
func (p *Pool) Expect(shards int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.few = min(max(fewLanes, (shards+laneRoom-1)/laneRoom), len(p.all))
	p.reading = p.few
	p.knownLimit = knownMore * max(laneRoom, (shards+p.few-1)/p.few)
}

// LimitKnown sets how many shards a connection may have worked for.
func (p *Pool) LimitKnown(shards int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.knownLimit = shards
}

// ConnectBeside makes a connection as the pool does, beside it.
func (p *Pool) ConnectBeside(ctx context.Context) (conn *pgx.Conn, err error) {
	pool := p.pool.Config()
	err = p.login.Try(ctx, func(ctx context.Context) (err error) {
		config := pool.ConnConfig.Copy()
		config.Tracer = nil
		if pool.BeforeConnect != nil {
			if err := pool.BeforeConnect(ctx, config); err != nil {
				return err
			}
		}
		conn, err = pgx.ConnectConfig(ctx, config)
		return err
	})
	return conn, err
}
