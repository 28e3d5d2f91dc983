package tracing_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// probe keeps the context that a tracer is given.
type probe struct{ ctx context.Context }

func (p *probe) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	p.ctx = ctx
	return ctx
}

func (p *probe) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// nowhere is where spans go.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                        { return nil }

// BenchmarkSpan tells what the span of one statement costs.
func BenchmarkSpan(b *testing.B) {
	theMap := shardtest.New(b, shardtest.Config{Shards: 4}).Map
	probe := &probe{}
	observed, err := router.New(b.Context(), router.Config{Map: theMap, Tracers: []pgx.QueryTracer{probe}})
	if err != nil {
		b.Fatal(err)
	}
	defer observed.Close()
	s, err := observed.ForShard(0)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Exec(b.Context(), `select 1`); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		sampler sdk.Sampler
	}{{"all", sdk.AlwaysSample()}, {"none", sdk.NeverSample()}} {
		b.Run(c.name, func(b *testing.B) {
			provider := sdk.NewTracerProvider(sdk.WithBatcher(nowhere{}), sdk.WithSampler(c.sampler))
			defer func() { _ = provider.Shutdown(context.Background()) }()
			t := tracing.New(tracing.Config{TracerProvider: provider})
			b.ReportAllocs()
			for b.Loop() {
				ctx := t.TraceQueryStart(probe.ctx, nil, pgx.TraceQueryStartData{SQL: "select 1"})
				t.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{})
			}
		})
	}
}
