// Package session has the sessions of a run to the hosts, and what a session asks its host.
package session

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// CleanUpLimit bounds clean-up that goes on after the caller's context has ended.
const CleanUpLimit = 30 * time.Second

// cancelLimit is how long a server may take to end a cancelled statement.
const cancelLimit = 5 * time.Second

// RecycleAfter is the number of shards after which a session is replaced, since Postgres caches the catalog entries of
// tables in the memory of a session. Tests lower it.
var RecycleAfter = 1000

// Session is one session to a host. It is used by one goroutine at a time.
type Session struct {
	Host     shards.Host
	Conn     *pgconn.PgConn
	Shards   int  // number of shards it has worked on
	ternLock bool // it holds tern's lock, shared
}

// Alive reports whether the session can work on another shard.
func (s *Session) Alive() bool { return !s.Conn.IsClosed() && s.Shards < RecycleAfter }

// Pool is a pool of sessions. It is safe for concurrent use.
type Pool struct {
	Logger *slog.Logger // gets the server's notices

	mu   sync.Mutex // guards idle
	idle map[string][]*Session
}

// Take returns an idle session to the host, or a new one.
func (p *Pool) Take(ctx context.Context, host shards.Host) (*Session, error) {
	p.mu.Lock()
	idle := p.idle[host.Name]
	if last := len(idle) - 1; last >= 0 {
		s := idle[last]
		p.idle[host.Name] = idle[:last]
		p.mu.Unlock()
		return s, nil
	}
	p.mu.Unlock()
	return p.Open(ctx, host)
}

// Give returns a session to the pool.
func (p *Pool) Give(s *Session) {
	if s.Conn.IsClosed() {
		return
	}
	if s.Shards >= RecycleAfter {
		ctx, cancel := context.WithTimeout(context.Background(), CleanUpLimit)
		defer cancel()
		s.Conn.Close(ctx)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = map[string][]*Session{}
	}
	p.idle[s.Host.Name] = append(p.idle[s.Host.Name], s)
}

// Close closes all idle sessions.
func (p *Pool) Close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanUpLimit)
	defer cancel()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, idle := range p.idle {
		for _, s := range idle {
			s.Conn.Close(ctx) // an error would change nothing
		}
	}
	p.idle = nil
}

// Open returns a new session to the host.
func (p *Pool) Open(ctx context.Context, host shards.Host) (*Session, error) {
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
			p.Logger.Log(context.Background(), level, n.Message, slog.String("host", host.Name), slog.String("sqlstate", n.Code))
		}
	})
	if err != nil {
		return nil, err
	}
	return &Session{Host: host, Conn: conn}, nil
}

// Value runs SQL text without parameters and returns the first column of its last row, as text.
func (s *Session) Value(ctx context.Context, query string) (string, error) {
	values, err := s.Values(ctx, query)
	if err != nil {
		return "", err
	}
	return values[len(values)-1], nil
}

// ValueNow is [Session.Value] for a query that does not wait. It completes even if ctx has ended, so the session can still
// be used after an interrupt.
func (s *Session) ValueNow(ctx context.Context, query string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanUpLimit)
	defer cancel()
	return s.Value(ctx, query)
}

// LockWait limits, at the beginning of a message or transaction, its waits for locks on our tables, unless the session has a
// lock_timeout. Files keep their own setting.
const LockWait = "select set_config('lock_timeout', '" + connect.LockWait + "', true) where current_setting('lock_timeout') = '0'; "

// Values runs SQL text and returns the first column of the last row of each statement that has rows.
//
// The statement_timeout of the role or the database is for files, not for what looks into all shards of a host.
func (s *Session) Values(ctx context.Context, query string) ([]string, error) {
	results, err := s.Conn.Exec(ctx, "set local statement_timeout = 0; "+query).ReadAll()
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

// Neutral resets a session to its initial state, except for its advisory locks, so that nothing of a file reaches the
// next shard: it is DISCARD ALL without the locks. The search_path has no schema to create in, so a CREATE outside a
// shard's transaction fails.
const Neutral = `close all; discard temp; discard sequences; deallocate all; unlisten *; ` +
	`reset session authorization; reset role; reset all; ` + connect.CheckRole + `; set search_path = pg_catalog`

// Recover resets a session after an error, or closes it.
func (s *Session) Recover(ctx context.Context) {
	if s.Conn.IsClosed() {
		return
	}
	if _, err := s.Conn.Exec(ctx, "rollback; "+Neutral).ReadAll(); err != nil {
		s.Conn.Close(ctx)
	}
}

// Flush waits until all commits of all sessions on this host so far are on disk. It commits a record with
// synchronous_commit on; the log is written in order. The record is a logical message, since Postgres does not wait for
// the disk without a write.
func (s *Session) Flush(ctx context.Context) error {
	const query = `
		select set_config('synchronous_commit', case current_setting('synchronous_commit')
		           when 'off' then 'on' else current_setting('synchronous_commit') end, true),
		       pg_catalog.pg_logical_emit_message(true, 'kiloshard', 'migrated')`
	_, err := s.Conn.Exec(ctx, query).ReadAll()
	return err
}

// KnowsStrings reports whether the server reads strings as the splitter of statements does.
func (s *Session) KnowsStrings() bool {
	return s.Conn.ParameterStatus("standard_conforming_strings") == "on"
}

// WaitedInVain reports whether a lock was not free within lock_timeout.
func WaitedInVain(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "55P03"
}

// Collided reports whether a transaction lost against another one by chance, so that it may go through if it runs again: a
// deadlock, a serialization failure, or two that write the same row of a catalog, as two GRANTs on one schema do. Postgres
// has no code of its own for the last kind, and does not translate its text.
func Collided(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "40P01", "40001":
		return true
	case "XX000":
		return pg.Message == "tuple concurrently updated" || pg.Message == "tuple concurrently deleted"
	case "23505":
		return pg.SchemaName == "pg_catalog"
	}
	return false
}

// Interrupted reports whether the run was interrupted.
func Interrupted(ctx context.Context) bool {
	select {
	case <-fanout.Interrupted(ctx):
		return true
	default:
		return false
	}
}

// EndWhenIdle makes the server end a session whose program is gone, such as after a failure of the network or of the
// program's machine. The session of a live program is never idle for long.
const EndWhenIdle = "set idle_session_timeout = '1min'"

// The first and the longest pause between two attempts to get a lock; pauses double.
const (
	FirstPause   = 2 * time.Millisecond
	LongestPause = 50 * time.Millisecond
)
