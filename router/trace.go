package router

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"
)

// tracers are what a pool's tracer is, so that it sees the callers' statements as it would on a plain pool, and none of
// the router's own.
type tracers struct {
	any     bool // there is one
	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	prepare pgx.PrepareTracer
	unsent  []UnsentTracer
	fanout  []FanoutTracer
}

// tracersOf has several tracers be told in their order. It returns what stands for all in the config of connections.
func tracersOf(all []pgx.QueryTracer) (t tracers) {
	for _, tracer := range all {
		if unsent, ok := tracer.(UnsentTracer); ok {
			t.unsent = append(t.unsent, unsent)
		}
	}
	switch len(all) {
	case 0:
		return t
	case 1:
		t.query = all[0]
	default:
		t.query = multitracer.New(all...)
	}
	t.any = true
	t.batch, _ = t.query.(pgx.BatchTracer)
	t.prepare, _ = t.query.(pgx.PrepareTracer)
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

// traced notes that tracers are told of an operation as it is sent, by pgx or here.
func traced(ctx context.Context) {
	if op, ok := ctx.(*operation); ok {
		op.told = true
	}
}

func (s *session) traceQuery(ctx context.Context, sql string, args []any) (context.Context, trace) {
	tracer := s.host.trace.query
	if tracer == nil {
		return ctx, trace{}
	}
	traced(ctx)
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
	traced(ctx)
	if s.host.trace.batch == nil {
		return ctx
	}
	if op, ok := ctx.(*operation); ok {
		op.Summary = s.host.texts.summaryOf(batch)
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
