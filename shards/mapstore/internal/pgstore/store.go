package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/mapstore/internal/backend"
)

// Config is the config of a [Store]. All fields but Credentials are required.
type Config struct {
	Store       shards.Store
	Cluster     string
	Credentials shards.CredentialsFunc // defaults to those of the DSN
	Poll        time.Duration
	Limit       time.Duration // of each request that Follow sends
}

// Store keeps the map of a cluster in a control database. It is safe for concurrent use.
type Store struct {
	cfg   Config
	login *connect.Login
	pool  *pgxpool.Pool
	name  string // for errors

	prepared atomic.Bool // [Store.prepare] was done
}

const (
	maxConns    = 4
	maxIdle     = 30 * time.Second
	connectTime = 3 * time.Second // at least, for one of several addresses
)

// Open returns the store of a control database. It does not connect.
func Open(cfg Config) (*Store, error) {
	login, config, err := connect.ForPool(cfg.Store.Host().WithCredentials(cfg.Credentials))
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	conn := config.ConnConfig
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler may be between
	// One address must leave time for the others, but should have as much as a busy server needs.
	conn.ConnectTimeout = min(conn.ConnectTimeout, max(connectTime, cfg.Limit/4))
	if conn.ValidateConnect == nil { // a standby may have old maps
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	connect.StateTracked(&conn.Config)
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "kiloshard"
	}
	config.MaxConns, config.MinConns, config.MinIdleConns, config.MaxConnIdleTime = maxConns, 0, 0, maxIdle
	login.AttendNewest(config)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	return &Store{cfg: cfg, login: login, pool: pool, name: cfg.Store.String()}, nil
}

// String names the store, without a password.
func (s *Store) String() string { return s.name }

// Close closes the connections, and waits for those in use.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

// Load returns the current version, nil for none.
func (s *Store) Load(ctx context.Context) (*backend.Version, error) {
	r, err := first(s.readTwice(ctx, latest, s.cfg.Cluster))
	return s.version(r), s.failed(err)
}

// pageSize is the most versions that Page returns.
const pageSize = 50

// Page returns some versions below a number, newest first, and none at the end.
func (s *Store) Page(ctx context.Context, below int) ([]*backend.Version, error) {
	const query = `select ` + columns + ` from kiloshard.maps where cluster = $1 and version < $2::bigint order by version desc limit $3`
	rows, err := s.readTwice(ctx, query, s.cfg.Cluster, below, pageSize)
	var page []*backend.Version
	for _, r := range rows {
		page = append(page, s.version(r))
	}
	return page, s.failed(err)
}

// withConn calls fn with a connection. If there is none, the error is Unsent.
func (s *Store) withConn(ctx context.Context, fn func(*pgxpool.Conn) error) error {
	var conn *pgxpool.Conn
	err := s.login.Try(ctx, func(ctx context.Context) (err error) {
		conn, err = s.pool.Acquire(ctx)
		return err
	})
	if err != nil {
		return backend.Unsent(err)
	}
	defer conn.Release()
	return fn(conn)
}

// failed adds the name of the store to an error. It returns nil for nil.
func (s *Store) failed(err error) error {
	if err == nil {
		return nil
	}
	if isConnecting(err) { // the error names the address
		return fmt.Errorf("store postgres: %w", err)
	}
	err = fmt.Errorf("store %s: %w", s.name, backend.Late(err))
	if isRefused(err) {
		return backend.Refusal(err)
	}
	return err
}

// Check returns the error that Swap would return for next. It also makes the change in a transaction that it rolls back,
// since the role may be one that only reads.
func (s *Store) Check(ctx context.Context, next backend.Propose) error {
	now, err := s.Load(ctx)
	if err != nil {
		return err
	}
	v, err := next(now)
	if err != nil || now == nil { // the first change creates the table
		return err
	}
	if err := s.prepare(ctx); err != nil {
		return s.failed(err)
	}
	_, err = newChange(s, now.Number, next).insert(ctx, v, "rollback")
	if errors.Is(err, pgx.ErrNoRows) || isLost(err) { // another change came first
		return nil
	}
	return s.failed(err)
}
