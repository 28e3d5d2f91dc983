package router

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// slowText is how much of a statement's text is logged, in bytes.
const slowText = 500

// slowLog logs what takes long. It is a tracer, so that nothing is spent where it is not wanted.
type slowLog struct {
	log   *slog.Logger
	after time.Duration
}

type slowKey struct{}

// TraceQueryStart keeps the text of a statement that has arguments. The text of one without may hold values itself, or a
// password, and is left out.
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

// TraceUnsent logs what waited long in vain.
func (l *slowLog) TraceUnsent(ctx context.Context, err error) { l.end(ctx, err) }

func (l *slowLog) end(ctx context.Context, err error) {
	op, ok := OperationOf(ctx)
	if !ok {
		return
	}
	took := time.Since(op.Began)
	if took < l.after {
		return
	}
	attrs := append(op.attrs(), slog.String("kind", op.Kind.String()), slog.Duration("took", took))
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
		attrs = append(attrs, slog.String("error", Classify(err)))
	}
	l.log.LogAttrs(ctx, slog.LevelWarn, "slow statement", attrs...)
}

// attrs say in a log which shard it is.
func (s Shard) attrs() []slog.Attr {
	h := s.home.now()
	return []slog.Attr{slog.String("host", h.host.Name), slog.Int("shard", int(h.number)), slog.String("schema", h.schema)}
}

func (o Operation) attrs() []slog.Attr {
	return []slog.Attr{slog.String("host", o.Host), slog.Int("shard", int(o.Shard.Number())), slog.String("schema", o.Schema)}
}

// logger returns the logger of a config, which is silent if there is none.
func (cfg Config) logger() *slog.Logger {
	if cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return cfg.Logger
}
