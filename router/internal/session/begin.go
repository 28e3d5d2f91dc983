package session

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

var (
	errNotBegun   = errors.New("BeginQuery has begun no transaction: what it did may be committed")
	errBeginQuery = errors.New("BeginQuery must be one statement")
)

// begin begins a transaction, in one round trip: an entry with a Sync of its own, which says whether the shard is there,
// then the statement that begins the transaction, and the path. BEGIN has to come before any query, and SET is none. A
// BeginQuery takes two.
func (s *Session) begin(ctx context.Context, sc Scope, opts pgx.TxOptions, reading bool) error {
	query := beginQuery(opts)
	own := opts.BeginQuery != ""
	if own {
		if err := s.note(query); err != nil {
			return err
		}
	}
	ctx, trace := s.host.Trace.Query(ctx, s.Conn, query, nil)
	err := s.prepareMissing(ctx)
	if err == nil {
		err = s.withBasePath(ctx, sc, func() error {
			err := s.beginOnce(ctx, sc, query, own, reading)
			if isUnknown(err) { // the entry, so that there is a transaction no more
				s.forgetAll()
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
	s.sending = time.Now()
	pipeline := s.Conn.PgConn().StartPipeline(ctx)
	to := pipelineSender(pipeline)
	s.enter(&to, sc, false, "")
	if s.mustWrite(sc) {
		to.params(writeAgain, nil, nil, nil, nil)
	}
	pipeline.SendPipelineSync()
	var entry, begin prepared
	var err error
	var second *Scope
	// A BeginQuery may be anything, also what commits and goes on: it is not sent before the entry has passed.
	waits := own && !s.pooled
	if waits {
		if err = pipeline.Flush(); err == nil {
			entry, err = s.readPrepared(pipeline, &sc)
		}
	}
	if err == nil && entry.err == nil {
		switch {
		case waits: // it may begin a transaction besides
			to.params("set local search_path = "+sc.path, nil, nil, nil, nil)
		case own: // the session may be another one after the Sync
			second = &sc
			s.enter(&to, sc, false, "")
		}
		to.params(query, nil, nil, nil, nil)
		to.params("set local search_path = "+sc.path, nil, nil, nil, nil)
		if reading {
			to.params("select", nil, nil, nil, nil) // after a query the transaction cannot be made one that writes
		}
		pipeline.SendPipelineSync()
		err = pipeline.Flush()
		if err == nil && !waits {
			entry, err = s.readPrepared(pipeline, &sc)
		}
		if err == nil {
			begin, err = s.readPrepared(pipeline, second)
		}
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
