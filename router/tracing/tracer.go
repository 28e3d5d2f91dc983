package tracing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/kiloshard/kiloshard/router/operation"
)

// scope is the name of the instrumentation.
const scope = "github.com/kiloshard/kiloshard/router/tracing"

var clientKind = trace.WithSpanKind(trace.SpanKindClient)

// Config says what spans contain.
type Config struct {
	// TracerProvider makes the spans. Defaults to the global one.
	TracerProvider trace.TracerProvider

	// QueryText records the text of statements, including values in the text. Defaults to false.
	QueryText bool

	// Arguments records the arguments of statements, and the server's messages, which may quote them. Defaults to false.
	Arguments bool

	// SampleByAttributes shows the sampler the attributes of a span, except texts and arguments. If it is false, they are added
	// only to spans that are recorded, which costs less. Defaults to false.
	SampleByAttributes bool
}

// Tracer makes spans. Put it into [router.Config].Tracers, of any number of routers. It is safe for concurrent use.
type Tracer struct {
	cfg    Config
	tracer trace.Tracer
	places places
}

var (
	_ pgx.QueryTracer        = (*Tracer)(nil)
	_ pgx.BatchTracer        = (*Tracer)(nil)
	_ pgx.CopyFromTracer     = (*Tracer)(nil)
	_ operation.UnsentTracer = (*Tracer)(nil)
)

// New returns a tracer.
func New(cfg Config) *Tracer {
	if cfg.TracerProvider == nil {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	return &Tracer{cfg: cfg, tracer: cfg.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))}
}

type startedKey struct{}

// started is the context of a span that has begun. It has a key of its own: under OpenTelemetry's key there may be the span of
// another tracer, or the caller's span around this one.
type started struct {
	context.Context
	span trace.Span
}

func (s *started) Value(key any) any {
	if _, own := key.(startedKey); own {
		return s
	}
	return s.Context.Value(key)
}

// unsampled reports whether the trace of a context is not recorded.
func unsampled(ctx context.Context) bool {
	parent := trace.SpanFromContext(ctx)
	around := parent.SpanContext()
	return around.IsValid() && !around.IsSampled() && !parent.IsRecording()
}

// start begins the span of an operation. It returns a nil span if the trace is not sampled.
func (t *Tracer) start(ctx context.Context, conn *pgx.Conn) (context.Context, trace.Span) {
	op, ok := operation.Of(ctx)
	if !ok || unsampled(ctx) {
		return ctx, nil
	}
	name := op.Summary
	if name == "" {
		name = "postgresql"
	}
	w := borrow()
	defer w.giveBack()
	w.options = append(w.options, clientKind, trace.WithTimestamp(op.Began))
	if t.cfg.SampleByAttributes {
		w.describe(t.places.of(op), op, conn)
		w.options = append(w.options, trace.WithAttributes(w.attrs...))
	}
	inner, span := t.tracer.Start(ctx, name, w.options...)
	if !span.IsRecording() {
		return ctx, nil
	}
	if !t.cfg.SampleByAttributes {
		w.describe(t.places.of(op), op, conn)
		span.SetAttributes(w.attrs...)
	}
	return &started{inner, span}, span
}

// end ends the span of a context, if it has one.
func (t *Tracer) end(ctx context.Context, err error) {
	s, ok := ctx.Value(startedKey{}).(*started)
	if !ok {
		return
	}
	if op, _ := operation.Of(ctx); op.Resent > 0 {
		s.span.SetAttributes(attribute.Int("kiloshard.resent", op.Resent), attribute.Int("kiloshard.together", op.Together))
	}
	t.fail(s.span, err)
	s.span.End()
}

// fail records an error, if there is one.
func (t *Tracer) fail(span trace.Span, err error) {
	if err == nil {
		return
	}
	class := operation.Classify(err)
	text := class
	if t.cfg.Arguments {
		text = err.Error()
	}
	span.SetStatus(codes.Error, text)
	var refusal *pgconn.PgError
	switch {
	case class == operation.ClassOther:
		span.SetAttributes(semconv.ErrorTypeOther)
	case errors.As(err, &refusal) && refusal.Code == class:
		span.SetAttributes(semconv.DBResponseStatusCode(class), semconv.ErrorTypeKey.String(class))
	default:
		span.SetAttributes(semconv.ErrorTypeKey.String(class))
	}
}

// TraceQueryStart begins the span of a statement.
func (t *Tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	ctx, span := t.start(ctx, conn)
	if span != nil && t.cfg.QueryText {
		span.SetAttributes(semconv.DBQueryText(data.SQL))
	}
	if span != nil && t.cfg.Arguments {
		span.SetAttributes(arguments(data.Args)...)
	}
	return ctx
}

// TraceQueryEnd ends the span of a statement.
func (t *Tracer) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	t.end(ctx, data.Err)
}

// TraceBatchStart begins the span of a batch.
func (t *Tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	ctx, span := t.start(ctx, conn)
	if span == nil {
		return ctx
	}
	if n := data.Batch.Len(); n > 1 {
		span.SetAttributes(semconv.DBOperationBatchSize(n))
	}
	if t.cfg.QueryText {
		span.SetAttributes(semconv.DBQueryText(texts(data.Batch)))
	}
	return ctx
}

// TraceBatchQuery does nothing: a batch has one span.
func (t *Tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends the span of a batch.
func (t *Tracer) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	t.end(ctx, data.Err)
}

// TraceCopyFromStart begins the span of a CopyFrom.
func (t *Tracer) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	ctx, _ = t.start(ctx, conn)
	return ctx
}

// TraceCopyFromEnd ends the span of a CopyFrom.
func (t *Tracer) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	t.end(ctx, data.Err)
}

// TraceUnsent makes the span of an operation that was not sent.
func (t *Tracer) TraceUnsent(ctx context.Context, err error) {
	ctx, _ = t.start(ctx, nil)
	t.end(ctx, err)
}
