package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/texts"
)

var (
	errNotBegun   = errors.New("BeginQuery has begun no transaction")
	errBeginQuery = errors.New("BeginQuery must be one statement")
)

// BeginTx begins a transaction. With reading nothing may be written in it. The lease is given back when it is over, but not
// after an error here. Attempt is what tracers are told. The error is about the shard.
func (s *Session) BeginTx(ctx context.Context, shard *Shard, held lease, attempt int, opts pgx.TxOptions, reading bool) (pgx.Tx, error) {
	if err := s.begin(ctx, shard.Scope(), opts, reading); err != nil {
		return nil, shard.Failed(err)
	}
	return &tx{transaction: &transaction{shard: shard, lease: held, attempt: attempt, session: s, commit: opts.CommitQuery}}, nil
}

// begin begins a transaction, in one round trip: an entry with a Sync of its own, which says whether the shard is there,
// then the statement that begins the transaction, and the path. BEGIN has to come before any query, and SET is none.
func (s *Session) begin(ctx context.Context, sc Scope, opts pgx.TxOptions, reading bool) error {
	query := beginQuery(opts)
	ctx, trace := s.host.Trace.Query(ctx, s.Conn, query, nil)
	own := opts.BeginQuery != ""
	err := s.prepareMissing(ctx)
	if err == nil {
		err = s.inBase(ctx, sc, func() error {
			err := s.beginOnce(ctx, sc, query, own, reading)
			if gone(err) { // the entry, so that there is a transaction no more
				s.forget()
				err = s.beginOnce(ctx, sc, query, own, reading)
			}
			return err
		})
	}
	tag := noTag
	if err == nil {
		tag = pgconn.NewCommandTag("BEGIN")
	}
	trace.End(tag, err)
	return err
}

func (s *Session) beginOnce(ctx context.Context, sc Scope, query string, own, reading bool) error {
	if len(s.pieces(query)) != 1 {
		return errBeginQuery
	}
	pipeline := s.Conn.PgConn().StartPipeline(ctx)
	to := pipelineSender(pipeline)
	s.enter(to, sc, false, "")
	pipeline.SendPipelineSync()
	var second *Scope
	switch {
	case own && s.pooled: // the session may be another one after the Sync
		second = &sc
		s.enter(to, sc, false, "")
	case own: // it may be anything, and begin a transaction besides
		to.params("set local search_path = "+sc.path, nil, nil, nil, nil)
	}
	to.params(query, nil, nil, nil, nil)
	to.params("set local search_path = "+sc.path, nil, nil, nil, nil)
	if reading {
		to.params("select", nil, nil, nil, nil) // after a query the transaction cannot be made one that writes
	}
	pipeline.SendPipelineSync()
	err := pipeline.Flush()
	var entry, begin prepared
	if err == nil {
		entry, err = readPrepared(pipeline, &sc)
	}
	if err == nil {
		begin, err = readPrepared(pipeline, second)
	}
	if closeErr := pipeline.Close(); err == nil && failure.SQLState(closeErr) == "" {
		err = closeErr
	}
	if err == nil {
		if err = entry.err; err == nil {
			err = begin.err
		}
	}
	if err == nil && s.Conn.PgConn().TxStatus() != 'T' {
		err = errNotBegun
	}
	if err != nil && !s.Conn.IsClosed() && s.Conn.PgConn().TxStatus() != 'I' {
		if rollbackErr := s.rollback(ctx); rollbackErr != nil {
			return rollbackErr
		}
	}
	return err
}

// beginQuery returns the statement that begins a transaction.
func beginQuery(opts pgx.TxOptions) string {
	if opts.BeginQuery != "" {
		return opts.BeginQuery
	}
	query := "begin"
	if opts.IsoLevel != "" {
		query += " isolation level " + string(opts.IsoLevel)
	}
	if opts.AccessMode != "" {
		query += " " + string(opts.AccessMode)
	}
	if opts.DeferrableMode != "" {
		query += " " + string(opts.DeferrableMode)
	}
	return query
}

// execute returns what runs a statement of the router's own in a transaction.
func (s *Session) execute(query string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.Conn.Exec(ctx, query)
		return err
	}
}

// rollbackAll rolls the transaction back.
func (t *transaction) rollbackAll(ctx context.Context) error {
	if t.large != nil {
		return t.large.Rollback(ctx)
	}
	return t.session.rollback(ctx)
}

// rollback rolls back what was begun. A connection on which that goes wrong is closed.
func (s *Session) rollback(ctx context.Context) error {
	_, err := s.Conn.Exec(ctx, "rollback")
	if err != nil {
		_ = s.Conn.Close(ctx) // whatever it says, the connection is closed
	}
	return err
}

// commitAll commits the transaction, by a query of the caller's own if there is one.
func (t *transaction) commitAll(ctx context.Context) error {
	s := t.session
	var tag pgconn.CommandTag
	var err error
	switch {
	case t.commit == "" && t.large != nil:
		return t.large.Commit(ctx)
	case t.commit == "":
		tag, err = s.Conn.Exec(ctx, "commit")
	default:
		if t.large != nil {
			defer t.large.Rollback(ctx) // it has ended, and is to know that
		}
		tag, err = s.Exec(ctx, t.scope(), t.commit, nil)
	}
	switch status := s.Conn.PgConn().TxStatus(); {
	case err != nil && status != 'I':
		_ = s.Conn.Close(ctx) // there is an error already
	case err == nil && status != 'I':
		_ = s.Conn.Close(ctx) // whatever it says, the connection is closed
		return fmt.Errorf("CommitQuery has left the transaction open: %s", t.commit)
	case err == nil && tag.String() == "ROLLBACK":
		return pgx.ErrTxCommitRollback
	}
	return err
}

// beforeQueries are words that begin statements which may have to come before any query of a transaction, or which Postgres
// takes after an error. They have an entry that is no query.
var beforeQueries = []string{"set", "commit", "end", "rollback", "abort", "savepoint", "release"}

// noQuery tells whether a statement begins with one of those words.
func noQuery(sql string) bool {
	return slices.Contains(beforeQueries, texts.FirstWord(sql))
}
