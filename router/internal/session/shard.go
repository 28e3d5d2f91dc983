package session

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/texts"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"
	"github.com/kiloshard/kiloshard/shards"
)

// Host is what the sessions of one host share.
type Host struct {
	Name         string
	Place        atomic.Pointer[shards.Host] // as it is in the map now
	Mode         pgx.QueryExecMode           // of statements that do not ask for one of their own
	Statements   int                         // kept prepared on each connection
	Trace        tracers.Tracers
	Log          *slog.Logger
	Texts        *texts.Cache
	Types        typeMaps
	Pooled       atomic.Bool                                                    // there is a pooler before the server
	AfterConnect func(context.Context, *pgx.Conn) error                         // of the pool's config, or nil
	ServerOf     func(context.Context, *pgconn.PgConn) (server string, _ error) // of a replica, which may be several servers; else nil
	Refused      func()                                                         // is called when a server refuses to write
	CancelBy     func(ctx context.Context, other *Session) bool                 // cancels a session's statement by a free session, if there is one; nil for never
}

// Failed says which host an error is about.
func (h *Host) Failed(err error) error { return &shards.HostError{Host: h.Name, Err: err} }

// Shard is a shard on a host.
type Shard struct {
	Number shards.Number
	Schema string
	Path   string // the search_path under which the names of the shard's tables resolve
	Reads  bool   // nothing is written by way of it
	Host   *Host
}

// Scope returns the scope of statements that stand by themselves.
func (s *Shard) Scope() Scope { return Scope{path: s.Path, schema: s.Schema, Reads: s.Reads} }

// Failed says which shard an error is about. The sentinels of pgx stay as they are, for callers that compare them.
func (s *Shard) Failed(err error) error {
	if err == nil || errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	if !s.Reads && failure.SQLState(err) == "25006" {
		s.Host.Refused()
	}
	if s.Reads {
		err = withFenced(err)
	}
	return &shards.ShardError{Shard: s.Number, Schema: s.Schema, Host: s.Host.Name, Err: failure.WithLost(withGrant(withMoved(err)))}
}

// Operation returns the context of an operation on the shard, and the operation; without tracers ctx and nil.
func (s *Shard) Operation(ctx context.Context, kind operation.Kind, summary string) (context.Context, *tracers.Operation) {
	if !s.Host.Trace.Any {
		return ctx, nil
	}
	return s.Host.Trace.Begin(ctx, operation.Info{
		Shard: s.Number, Host: s.Host.Name, Place: s.Host.Place.Load(), Schema: s.Schema, Kind: kind, Summary: summary,
	})
}
