package mapstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/sql"
	"github.com/kiloshard/kiloshard/sql/special"
)

// postgresStore keeps the maps of clusters in the table kiloshard.maps of a control database, which the first Swap makes.
//
// A role that only reads needs usage of the schema kiloshard and select on the table. All watchers share one connection; the
// other methods use up to maxConns, which are closed when idle.
type postgresStore struct {
	cluster string
	login   *connect.Login
	pool    *pgxpool.Pool
	place   string // for errors
	docs    documents
	opts    Options
	feed    feed

	prepared atomic.Bool // [postgresStore.prepare] was done

	mu     sync.RWMutex // guards what follows
	closed bool
}

const (
	maxConns    = 4
	maxIdle     = 30 * time.Second
	connectTime = 3 * time.Second // at least, for one of several addresses
)

// openPostgres opens a store in a control database. The defaults of opts are filled in.
func openPostgres(cfg shards.Config, opts Options) (Store, error) {
	login, config, err := connect.ForPool(cfg.Store.Host().WithCredentials(opts.Credentials))
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	conn := config.ConnConfig
	conn.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler may be between
	// One address must leave time for the others, but should have as much as a busy server needs.
	conn.ConnectTimeout = min(conn.ConnectTimeout, max(connectTime, opts.Limit/4))
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
	s := &postgresStore{
		cluster: cfg.Cluster, login: login, pool: pool, place: cfg.Store.String(), docs: opts.documents(cfg), opts: opts,
	}
	s.feed.follow = s.follow
	return s, nil
}

// Format prints the name of the store for every verb, so that no password is printed.
func (s *postgresStore) Format(state fmt.State, _ rune) {
	_, _ = io.WriteString(state, "store "+s.place)
}

// localConfig returns the config of this machine, which overrides a copy of the map.
func (s *postgresStore) localConfig() shards.Config { return s.docs.local }

// Load implements [Store].
func (s *postgresStore) Load(ctx context.Context) (Entry, error) {
	var r row
	err := s.query(ctx, func(ctx context.Context, on querier) (err error) {
		r, err = s.latest(ctx, on)
		return err
	})
	if err != nil {
		return Entry{}, err
	}
	if r.Version == 0 {
		return Entry{}, ErrNoMap
	}
	return s.entry(r, s.docs)
}

// History implements [Store].
func (s *postgresStore) History(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		const page = 50
		query := `select ` + columns + ` from kiloshard.maps where cluster = $1 and version <= $2 order by version desc limit ` + fmt.Sprint(page)
		docs := s.docs.keepUnset()
		for most := math.MaxInt32; ; {
			var all []row
			err := s.query(ctx, func(ctx context.Context, on querier) (err error) {
				all, err = read(ctx, on, query, s.cluster, most)
				return err
			})
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, r := range all {
				e, err := s.entry(r, docs)
				if !yield(e, err) || err != nil {
					return
				}
				most = r.Version - 1
			}
			if len(all) < page {
				return
			}
		}
	}
}

// Watch implements [Store].
func (s *postgresStore) Watch(ctx context.Context, after int) iter.Seq2[Entry, error] {
	return s.feed.watch(ctx, after)
}

// Close implements [Store].
func (s *postgresStore) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.feed.close()
	s.pool.Close()
	return nil
}

// row is a version in the table. Version is 0 for none.
type row struct {
	Version  int
	Document string
	At       time.Time
	By       string
	Why      string
	Attempt  string
	Role     string
}

const columns = "version, document, made_at, made_by, why, attempt, role::text"

func (s *postgresStore) entry(r row, docs documents) (Entry, error) {
	m, err := docs.parse(fmt.Sprintf("version %d of the map in %s", r.Version, s.place), r.Version, []byte(r.Document))
	return Entry{Map: m, At: r.At.UTC(), By: r.By, Why: r.Why, Role: r.Role}, err
}

// querier is a connection.
type querier interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// latest returns the newest version.
func (s *postgresStore) latest(ctx context.Context, on querier) (row, error) {
	const query = `select ` + columns + ` from kiloshard.maps where cluster = $1 order by version desc limit 1`
	return one(ctx, on, query, s.cluster)
}

// one returns the row of a query, the zero row if there is none, or no table.
func one(ctx context.Context, on querier, query string, args ...any) (row, error) {
	rows, err := read(ctx, on, query, args...)
	if err != nil || len(rows) == 0 {
		return row{}, err
	}
	return rows[0], nil
}

var errNotPlain = errors.New("kiloshard.maps was made by somebody else: expected a plain table, as the first change of the map makes it")

// read returns the rows of a query of the table, none if there is no table. It refuses a table that is not safe to read,
// whoever made it, in the same transaction.
func read(ctx context.Context, on querier, query string, args ...any) (all []row, err error) {
	var batch pgx.Batch
	batch.Queue(special.Refuse("kiloshard.maps"))
	batch.Queue(query, args...).Query(func(rows pgx.Rows) (err error) {
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		return err
	})
	switch err := on.SendBatch(ctx, &batch).Close(); {
	case isMissing(err):
		return nil, nil
	case sqlState(err) == sql.Refused || sqlState(err) == "42809": // wrong_object_type
		return nil, errNotPlain
	default:
		return all, err
	}
}

// on calls fn with a connection. If there is none, the error is an unsentError.
func (s *postgresStore) on(ctx context.Context, fn func(*pgxpool.Conn) error) error {
	var conn *pgxpool.Conn
	err := s.login.Try(ctx, func(ctx context.Context) (err error) {
		conn, err = s.pool.Acquire(ctx)
		return err
	})
	if err != nil {
		return &unsentError{err}
	}
	defer conn.Release()
	return fn(conn)
}

// query runs fn within the limit, and once more if an idle connection turns out to be broken.
func (s *postgresStore) query(ctx context.Context, fn func(context.Context, querier) error) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limit)
	defer cancel()
	once := func() error {
		return s.on(ctx, func(conn *pgxpool.Conn) error { return fn(ctx, conn) })
	}
	err := once()
	if err != nil && isBroken(err) && ctx.Err() == nil {
		s.pool.Reset()
		err = once()
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

func (s *postgresStore) ready(ctx context.Context) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// failed adds the name of the store to an error.
func (s *postgresStore) failed(err error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if isConnecting(err) { // which names the address
		return fmt.Errorf("store postgres: %w", err)
	}
	err = fmt.Errorf("store %s: %w", s.place, orLate(err))
	if isRefused(err) {
		return refusal(err)
	}
	return err
}
