package migrate

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// cleanUpLimit bounds clean-up that goes on after the caller's context has ended.
const cleanUpLimit = 30 * time.Second

// cancelLimit is how long a server may take to end a cancelled statement.
const cancelLimit = 5 * time.Second

// session is one session to a host. It is used by one goroutine at a time.
type session struct {
	host     shards.Host
	conn     *pgconn.PgConn
	ternLock bool // it holds tern's lock, shared
	shards   int  // number of shards it has worked on
}

// sessions is a pool of sessions. It is safe for concurrent use.
type sessions struct {
	logger *slog.Logger

	mu   sync.Mutex // guards idle
	idle map[string][]*session
}

// take returns an idle session to the host, or a new one.
func (p *sessions) take(ctx context.Context, host shards.Host) (*session, error) {
	p.mu.Lock()
	idle := p.idle[host.Name]
	if last := len(idle) - 1; last >= 0 {
		s := idle[last]
		p.idle[host.Name] = idle[:last]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	return p.open(ctx, host)
}

// give returns a session to the pool.
func (p *sessions) give(s *session) {
	if s.conn.IsClosed() {
		return
	}
	if s.shards >= recycleAfter {
		ctx, cancel := context.WithTimeout(context.Background(), cleanUpLimit)
		defer cancel()
		s.conn.Close(ctx)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = map[string][]*session{}
	}
	p.idle[s.host.Name] = append(p.idle[s.host.Name], s)
}

// close closes all idle sessions.
func (p *sessions) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, idle := range p.idle {
		for _, s := range idle {
			s.conn.Close(ctx) // an error would change nothing
		}
	}
	p.idle = nil
}

func (p *sessions) open(ctx context.Context, host shards.Host) (*session, error) {
	conn, err := connect.OpenPlain(ctx, host, func(config *pgconn.Config) {
		if config.RuntimeParams["application_name"] == "" {
			config.RuntimeParams["application_name"] = "kiloshard migrate"
		}
		config.RuntimeParams["search_path"] = "pg_catalog, pg_temp" // until a file sets its shard's
		// Cancel on the server too, and wait for its answer, so that no statement commits unnoticed.
		config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelLimit}
		}
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
			level := slog.LevelDebug
			if n.SeverityUnlocalized == "WARNING" {
				level = slog.LevelWarn
			}
			p.logger.Log(context.Background(), level, n.Message, slog.String("host", host.Name), slog.String("sqlstate", n.Code))
		}
	})
	if err != nil {
		return nil, err
	}
	return &session{host: host, conn: conn}, nil
}

// value runs SQL text without parameters and returns the first column of its last row, as text.
func (s *session) value(ctx context.Context, query string) (string, error) {
	values, err := s.values(ctx, query)
	if err != nil {
		return "", err
	}
	return values[len(values)-1], nil
}

// valueNow is [session.value] for a query that does not wait. It completes even if ctx has ended, so the session can still
// be used after an interrupt.
func (s *session) valueNow(ctx context.Context, query string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	return s.value(ctx, query)
}

// lockWait, at the beginning of a message or transaction, limits its waits for locks on our tables, unless the session has a
// lock_timeout. Files keep their own setting.
const lockWait = "select set_config('lock_timeout', '" + connect.LockWait + "', true) where current_setting('lock_timeout') = '0'; "

// values runs SQL text and returns the first column of the last row of each statement that has rows.
//
// The statement_timeout of the role or the database is for files, not for what looks into all shards of a host.
func (s *session) values(ctx context.Context, query string) ([]string, error) {
	results, err := s.conn.Exec(ctx, "set local statement_timeout = 0; "+query).ReadAll()
	if err != nil {
		return nil, err
	}
	var values []string
	for _, result := range results {
		if last := len(result.Rows) - 1; last >= 0 {
			values = append(values, string(result.Rows[last][0]))
		}
	}
	return values, nil
}

// neutral resets a session to its initial state, except for its advisory locks, so that nothing of a file reaches the
// next shard: it is DISCARD ALL without the locks. The search_path has no schema to create in, so a CREATE outside a
// shard's transaction fails.
const neutral = `close all; discard temp; discard sequences; deallocate all; unlisten *; ` +
	`reset session authorization; reset role; reset all; ` + connect.CheckRole + `; set search_path = pg_catalog`

// recover resets a session after an error, or closes it.
func (s *session) recover(ctx context.Context) {
	if s.conn.IsClosed() {
		return
	}
	if _, err := s.conn.Exec(ctx, "rollback; "+neutral).ReadAll(); err != nil {
		s.conn.Close(ctx)
	}
}

// flush waits until all commits of all sessions on this host so far are on disk. It commits a record with
// synchronous_commit on; the log is written in order. The record is a logical message, since Postgres does not wait for
// the disk without a write.
func (s *session) flush(ctx context.Context) error {
	const query = `
		select set_config('synchronous_commit', case current_setting('synchronous_commit')
		           when 'off' then 'on' else current_setting('synchronous_commit') end, true),
		       pg_catalog.pg_logical_emit_message(true, 'kiloshard', 'migrated')`
	_, err := s.conn.Exec(ctx, query).ReadAll()
	return err
}
