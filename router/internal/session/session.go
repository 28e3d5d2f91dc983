package session

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/primary"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/shards"
)

// Session is the state that the router keeps of one connection. Only the holder of the connection may use it.
type Session struct {
	host       *Host
	Conn       *pgx.Conn
	wire       *primary.Conn // nil if it is not known
	leaving    *leaving      // nil if pgx does it
	statements *statements
	encoder    pgx.ExtendedQueryBuilder
	only       [1]statement // room for a statement that is sent by itself
	batch      pgconn.Batch // room for what is sent

	Server        string                                  // of a replica, which the session is on; empty if unknown
	ownStatements map[string]*pgconn.StatementDescription // the router's own, by name; nil where nothing is prepared

	entered map[string]*entered // shards that a first entry has found, by path; none behind a pooler

	sending time.Time // when the last message with an entry was begun, at the latest
	at      string    // the path under which what is sent next is likely to run; empty if it is not known

	reports bool // the server reports the path, and the session may keep that of a shard

	endsUnprepared bool // a statement has deallocated the one that ends its transaction

	pid, started string // of the server's process: its number, and the Unix time in seconds at which it began

	pooled bool   // a pooler may give each transaction to another server session
	base   string // the path that the session has between messages: see entryQuery
	Left   bool   // something of a caller's may be left on it
}

// Host is what the sessions of one host share.
type Host struct {
	Name         string
	Place        atomic.Pointer[shards.Host] // as it is in the map now
	Mode         pgx.QueryExecMode           // of statements that do not ask for one of their own
	Statements   int                         // kept prepared on each connection
	Trace        tracers.Tracers
	Log          *slog.Logger
	Texts        *texts.Cache
	Types        buffered.Types
	Pooled       atomic.Bool                                                    // there is a pooler before the server
	Keeps        bool                                                           // nobody else uses the connections: a session may keep the path of a shard
	Entered      atomic.Uint64                                                  // messages so far that began with an entry
	Kept         atomic.Uint64                                                  // messages so far that went without one
	AfterConnect func(context.Context, *pgx.Conn) error                         // of the pool's config, or nil
	ServerOf     func(context.Context, *pgconn.PgConn) (server string, _ error) // of a replica, which may be several servers; else nil
	ReadOnly     func()                                                         // is called when a server refuses to write
	CancelBy     func(ctx context.Context, other *Session) bool                 // cancels a session's statement by a free session, if there is one; nil for never
}

// count counts a message that begins with an entry, or the group of a pipeline, or one that has none.
func (h *Host) count(kept bool) {
	if kept {
		h.Kept.Add(1)
	} else {
		h.Entered.Add(1)
	}
}

// Shard is a shard on a host.
type Shard struct {
	Number shards.Number
	Schema string
	Path   string // the search_path under which the names of the shard's tables resolve
	Reads  bool   // nothing is written by way of it
	Host   *Host
}

// Scope says where the unqualified names of a statement resolve.
type Scope struct {
	path   string // a search_path
	schema string // of the shard, which comes first in it
	held   bool   // the statement is in a transaction of the caller's
	opens  bool   // a transaction of the caller's begins with it
	ends   *bool  // the transaction of the caller's is committed with it; set to whether it was
	Reads  bool   // nothing may be written
	Guess  bool   // Reads is what the words of the statement say: it holds if the catalog vouches for it
	Single bool   // the statement is sent by itself or in a group of reads
	Keeps  bool   // the session may keep the path: see [Shard.ScopeAlone]
}

// alone reports whether a statement is a transaction of its own, which is cancelled if its caller leaves. One in a caller's transaction is
// not: what the caller sends after it must not run.
func (sc Scope) alone() bool { return !sc.held && !sc.opens && sc.ends == nil }

// Ended reports whether the other end has closed the connection. It sends nothing, and is for a connection that was idle.
func (s *Session) Ended() bool { return s.wire != nil && s.wire.Ended() }

// Broken reports whether the connection is closed, even if pgx does not know it yet.
func (s *Session) Broken() bool {
	return s.Conn.IsClosed() || s.wire != nil && s.wire.Cut() || s.leaving != nil && s.leaving.late
}

// rollback rolls back what was begun. A connection on which that goes wrong is closed.
func (s *Session) rollback(ctx context.Context) error {
	_, err := s.Conn.Exec(ctx, "rollback")
	if err != nil {
		_ = s.Conn.Close(ctx) // an error leaves it closed, too
	}
	return err
}

// Cancel has the server cancel the statement of the session, by another session of the host if one is free: a cancel request
// costs the server a new process, and us a connection with TLS. Without an error the signal has reached the process of the
// session, and no later statement is canceled by it: Postgres answers only after it has sent the signal. Behind a pooler the process
// may serve another client by then; only the pooler knows.
func (s *Session) Cancel(ctx context.Context) error {
	if !s.pooled && s.host.CancelBy != nil && s.host.CancelBy(ctx, s) {
		return nil
	}
	if err := s.Conn.PgConn().CancelRequest(ctx); err != nil {
		return err
	}
	return ctx.Err() // for which pgx returns nil
}

// CancelOther cancels the statement of another session, and reports whether that session is on the same server. A process
// number alone does not identify it: an address may lead to several servers.
func (s *Session) CancelOther(ctx context.Context, other *Session) bool {
	const query = `select pg_catalog.pg_cancel_backend($1::pg_catalog.int4) from pg_catalog.pg_stat_get_activity($1::pg_catalog.int4)
where extract(epoch from backend_start) operator(pg_catalog.=) $2::pg_catalog.numeric`
	values := [][]byte{[]byte(other.pid), []byte(other.started)}
	result := s.Conn.PgConn().ExecParams(ctx, query, values, nil, nil, nil).Read()
	return result.Err == nil && len(result.Rows) == 1 && string(result.Rows[0][0]) == "t"
}
