// Package tracers tells tracers of a service's statements, as pgx would on a plain pool, and of none of the router's own.
package tracers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/operation"
)

// Tracers are the tracers of one host. The zero Tracers are none.
type Tracers struct {
	Any bool // there is one

	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	prepare pgx.PrepareTracer
	unsent  []operation.UnsentTracer
}

// Of has several tracers be told in their order.
func Of(all []pgx.QueryTracer) (t Tracers) {
	for _, tracer := range all {
		if unsent, ok := tracer.(operation.UnsentTracer); ok {
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
	t.Any = true
	t.batch, _ = t.query.(pgx.BatchTracer)
	t.prepare, _ = t.query.(pgx.PrepareTracer)
	return t
}

// Tracer returns what stands for all in the config of connections, nil if there is none.
func (t *Tracers) Tracer() pgx.QueryTracer { return t.query }

// Trace is one that has begun. The zero Trace does nothing.
type Trace struct {
	ctx     context.Context
	conn    *pgx.Conn
	started time.Time
	sql     string
	args    []any

	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	prepare pgx.PrepareTracer
}

// End tells tracers of its end.
func (t Trace) End(tag pgconn.CommandTag, err error) {
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
	if op, ok := ctx.(*Operation); ok {
		op.told = true
	}
}

// Query begins the trace of a statement.
func (t *Tracers) Query(ctx context.Context, conn *pgx.Conn, sql string, args []any) (context.Context, Trace) {
	if t.query == nil {
		return ctx, Trace{}
	}
	if op, ok := ctx.(*Operation); ok && op.GoesOn() {
		op.ended = true // for the trace tells of it
		return op.traced, Trace{ctx: op.traced, conn: op.conn, query: t.query}
	}
	traced(ctx)
	ctx = t.query.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: sql, Args: args})
	return ctx, Trace{ctx: ctx, conn: conn, query: t.query}
}

// Prepare begins the trace of the preparing of a statement.
func (t *Tracers) Prepare(ctx context.Context, conn *pgx.Conn, name, sql string) Trace {
	ctx = t.prepare.TracePrepareStart(ctx, conn, pgx.TracePrepareStartData{Name: name, SQL: sql})
	return Trace{ctx: ctx, conn: conn, prepare: t.prepare}
}

// Prepares reports whether a tracer wants to hear of statements that are prepared.
func (t *Tracers) Prepares() bool { return t.prepare != nil }

// Batch begins the trace of a batch. summarize is called if somebody wants to know.
func (t *Tracers) Batch(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, summarize func(*pgx.Batch) string) context.Context {
	traced(ctx)
	if t.batch == nil {
		return ctx
	}
	if op, ok := ctx.(*Operation); ok {
		op.Summary = summarize(batch)
	}
	return t.batch.TraceBatchStart(ctx, conn, pgx.TraceBatchStartData{Batch: batch})
}

// Answer begins the trace of one answer in a batch, whose context came from Batch.
func (t *Tracers) Answer(ctx context.Context, conn *pgx.Conn, sql string, args []any) Trace {
	if t.batch == nil {
		return Trace{}
	}
	return Trace{ctx: ctx, conn: conn, started: time.Now(), sql: sql, args: args, batch: t.batch}
}

// BatchEnd ends the trace of a batch.
func (t *Tracers) BatchEnd(ctx context.Context, conn *pgx.Conn, err error) {
	if t.batch != nil {
		t.batch.TraceBatchEnd(ctx, conn, pgx.TraceBatchEndData{Err: err})
	}
}
