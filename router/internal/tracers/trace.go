// Package tracers passes a service's statements to pgx tracers, as pgx does on a plain pool. It does not pass the router's
// own statements.
package tracers

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/operation"
)

// Tracers are the tracers of one host. The zero value has none.
type Tracers struct {
	Any bool // there is one

	query   pgx.QueryTracer
	batch   pgx.BatchTracer
	prepare pgx.PrepareTracer
	unsent  []operation.UnsentTracer
}

// Of combines tracers. They are called in order.
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

// Tracer returns the tracer for the config of connections, nil if there is none.
func (t *Tracers) Tracer() pgx.QueryTracer { return t.query }

// Trace is a trace that has started. The zero Trace does nothing.
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

// End ends the trace.
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

// markStarted records that the start of an operation was traced, by pgx or by this package.
func markStarted(ctx context.Context) {
	if op, ok := ctx.(*Operation); ok {
		op.started = true
	}
}

// Query starts the trace of a statement.
func (t *Tracers) Query(ctx context.Context, conn *pgx.Conn, sql string, args []any) (context.Context, Trace) {
	if t.query == nil {
		return ctx, Trace{}
	}
	if op, ok := ctx.(*Operation); ok && op.Running() {
		op.ended = true // the Trace traces the end
		return op.traced, Trace{ctx: op.traced, conn: op.conn, query: t.query}
	}
	markStarted(ctx)
	ctx = t.query.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: sql, Args: args})
	return ctx, Trace{ctx: ctx, conn: conn, query: t.query}
}

// Prepare starts the trace of preparing a statement.
func (t *Tracers) Prepare(ctx context.Context, conn *pgx.Conn, name, sql string) Trace {
	ctx = t.prepare.TracePrepareStart(ctx, conn, pgx.TracePrepareStartData{Name: name, SQL: sql})
	return Trace{ctx: ctx, conn: conn, prepare: t.prepare}
}

// Prepares reports whether a tracer traces Prepare.
func (t *Tracers) Prepares() bool { return t.prepare != nil }

// Batch starts the trace of a batch. It calls summarize only if a tracer traces batches.
func (t *Tracers) Batch(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, summarize func(*pgx.Batch) string) context.Context {
	markStarted(ctx)
	if t.batch == nil {
		return ctx
	}
	if op, ok := ctx.(*Operation); ok {
		op.Summary = summarize(batch)
	}
	return t.batch.TraceBatchStart(ctx, conn, pgx.TraceBatchStartData{Batch: batch})
}

// Answer starts the trace of one answer in a batch. ctx is from Batch.
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
