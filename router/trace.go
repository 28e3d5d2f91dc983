package router

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// tracers are what a pool's tracer is, so that it sees the callers' statements as it would on a plain pool, and none of
// the router's own.
type tracers struct {
	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	prepare pgx.PrepareTracer
}

func tracersOf(tracer pgx.QueryTracer) (t tracers) {
	t.query = tracer
	t.batch, _ = tracer.(pgx.BatchTracer)
	t.prepare, _ = tracer.(pgx.PrepareTracer)
	return t
}

// trace is one that has begun. The zero trace does nothing.
type trace struct {
	ctx     context.Context
	conn    *pgx.Conn
	started time.Time
	sql     string
	args    []any

	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	prepare pgx.PrepareTracer
}

func (t trace) end(tag pgconn.CommandTag, err error) {
	switch {
	case t.query != nil:
		t.query.TraceQueryEnd(t.ctx, t.conn, pgx.TraceQueryEndData{CommandTag: tag, Err: err})
	case t.batch != nil:
		t.batch.TraceBatchQuery(t.ctx, t.conn, pgx.TraceBatchQueryData{
			SQL: t.sql, Args: t.args, CommandTag: tag, Err: err, ReadStartTime: t.started,
		})
	case t.prepare != nil:
		t.prepare.TracePrepareEnd(t.ctx, t.conn, pgx.TracePrepareEndData{Err: err})
	}
}

func (s *session) traceQuery(ctx context.Context, sql string, args []any) (context.Context, trace) {
	tracer := s.host.trace.query
	if tracer == nil {
		return ctx, trace{}
	}
	ctx = tracer.TraceQueryStart(ctx, s.conn, pgx.TraceQueryStartData{SQL: sql, Args: args})
	return ctx, trace{ctx: ctx, conn: s.conn, query: tracer}
}

// tracePrepare begins the trace of a statement of the caller's, and of nothing else.
func (s *session) tracePrepare(ctx context.Context, key *statementKey) trace {
	tracer := s.host.trace.prepare
	if tracer == nil || key == nil {
		return trace{}
	}
	ctx = tracer.TracePrepareStart(ctx, s.conn, pgx.TracePrepareStartData{Name: key.name(), SQL: key.sql})
	return trace{ctx: ctx, conn: s.conn, prepare: tracer}
}

func (s *session) traceBatch(ctx context.Context, batch *pgx.Batch) context.Context {
	if s.host.trace.batch == nil {
		return ctx
	}
	return s.host.trace.batch.TraceBatchStart(ctx, s.conn, pgx.TraceBatchStartData{Batch: batch})
}

// traceAnswer begins the trace of one answer in a batch, whose context came from traceBatch.
func (s *session) traceAnswer(ctx context.Context, st *statement) trace {
	if s.host.trace.batch == nil {
		return trace{}
	}
	return trace{ctx: ctx, conn: s.conn, started: time.Now(), sql: st.sql, args: st.args, batch: s.host.trace.batch}
}

func (s *session) traceBatchEnd(ctx context.Context, err error) {
	if s.host.trace.batch != nil {
		s.host.trace.batch.TraceBatchEnd(ctx, s.conn, pgx.TraceBatchEndData{Err: err})
	}
}
