package tracers

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/operation"
)

// slowText limits how much of a statement's text is logged, in bytes.
const slowText = 500

// slowLog logs slow operations.
type slowLog struct {
	log   *slog.Logger
	after time.Duration
}

// SlowLog returns a tracer that logs each operation that takes longer than after.
func SlowLog(log *slog.Logger, after time.Duration) pgx.QueryTracer { return &slowLog{log, after} }

type slowKey struct{}

// TraceQueryStart keeps the text of a statement that has arguments. A statement without arguments may contain values or a
// password in its text, so its text is not logged.
func (l *slowLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if len(data.Args) == 0 {
		return ctx
	}
	return context.WithValue(ctx, slowKey{}, data.SQL)
}

func (l *slowLog) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	l.end(ctx, data.Err)
}

func (l *slowLog) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	return context.WithValue(ctx, slowKey{}, data.Batch)
}

func (l *slowLog) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (l *slowLog) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	l.end(ctx, data.Err)
}

func (l *slowLog) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return ctx
}

func (l *slowLog) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	l.end(ctx, data.Err)
}

// TraceUnsent logs an operation that waited long and was not sent.
func (l *slowLog) TraceUnsent(ctx context.Context, err error) { l.end(ctx, err) }

func (l *slowLog) end(ctx context.Context, err error) {
	op, ok := operation.Of(ctx)
	if !ok {
		return
	}
	took := time.Since(op.Began)
	if took < l.after {
		return
	}
	attrs := append(attrsOf(op), slog.String("kind", op.Kind.String()), slog.Duration("took", took))
	if op.Waited > 0 {
		attrs = append(attrs, slog.Duration("waited", op.Waited))
	}
	if op.Together > 1 {
		attrs = append(attrs, slog.Int("together", op.Together))
	}
	if op.Summary != "" {
		attrs = append(attrs, slog.String("summary", op.Summary))
	}
	switch of := ctx.Value(slowKey{}).(type) {
	case string:
		attrs = append(attrs, slog.String("sql", of[:min(len(of), slowText)]))
	case *pgx.Batch:
		attrs = append(attrs, slog.Int("statements", of.Len()))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", operation.Classify(err)))
	}
	l.log.LogAttrs(ctx, slog.LevelWarn, "slow statement", attrs...)
}

// attrsOf returns the attributes that identify the shard.
func attrsOf(o operation.Info) []slog.Attr {
	return []slog.Attr{slog.String("host", o.Host), slog.Int("shard", int(o.Shard)), slog.String("schema", o.Schema)}
}
