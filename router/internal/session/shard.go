package session

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/tracers"
	"github.com/kiloshard/kiloshard/router/operation"
	"github.com/kiloshard/kiloshard/shards"
)

// Failed says which host an error is about.
func (h *Host) Failed(err error) error { return &shards.HostError{Host: h.Name, Err: err} }

// Scope returns the scope of statements that stand by themselves.
func (s *Shard) Scope() Scope { return Scope{path: s.Path, schema: s.Schema, Reads: s.Reads} }

// Failed says which shard an error is about. The sentinels of pgx stay as they are, for callers that compare them.
func (s *Shard) Failed(err error) error {
	if err == nil || errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	if !s.Reads && failure.SQLState(err) == "25006" {
		s.Host.ReadOnly()
	}
	if s.Reads {
		err = withFenced(err)
	}
	return &shards.ShardError{Shard: s.Number, Schema: s.Schema, Host: s.Host.Name, Err: failure.WithLost(withGrant(withMoved(err)))}
}

// ScopeAlone returns the scope of a single statement whose caller asks an entry what is true after an error: see [MayHaveMoved]. The session
// may keep the path, unless it has schemas in which a statement could find what is missing in the shard's.
func (s *Shard) ScopeAlone() Scope {
	sc := s.Scope()
	sc.Single = true
	rest, _ := strings.CutPrefix(s.Path, s.Schema)
	sc.Keeps = rest == ", pg_temp"
	return sc
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
