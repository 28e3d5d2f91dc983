package routes

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
)

// observer is a kind of observability: metrics or traces.
type observer struct {
	what     string
	metrics  bool
	sampling float64 // the share of the traces that are recorded; 0 for no tracing
}

func observers() []observer {
	return []observer{
		{"metrics", true, 0},
		{"metrics, 1% of spans", true, 0.01},
		{"metrics, all spans", true, 1},
	}
}

// bareSpans is the cost of the tracing library alone: a span without attributes around each call of a router without
// observability.
const bareSpans = "bare spans around the call"

// measureObserved compares routers with observability to one without, which takes the place of pgxpool.
func measureObserved(ctx context.Context, b *bench) error {
	m, err := b.newCluster(ctx, b.most(fewShards), 1)
	if err != nil {
		return err
	}
	off, err := openRouter(ctx, m)
	if err != nil {
		return err
	}
	defer off.Close()
	provider := recordingSpans(1)
	defer func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) }() // its exporter has no errors
	plain := oursOver(off, selects, int64(m.Len()))
	whats, calls := []string{bareSpans}, []call{plain, inSpans(provider.Tracer("bench"), plain)}
	for _, o := range observers() {
		r, end, err := o.open(ctx, m)
		if err != nil {
			return err
		}
		defer end()
		whats, calls = append(whats, o.what), append(calls, oursOver(r, selects, int64(m.Len())))
	}
	for _, goroutines := range []int{1, 64, 256} {
		b.progress("%d goroutines", goroutines)
		laps, err := b.compare(ctx, goroutines, calls...)
		if err != nil {
			return err
		}
		for i, what := range whats {
			b.addLaps("select, "+what, goroutines, laps[i+1], laps[0], perSecond, p50, p99)
		}
	}
	return nil
}

// inSpans puts a span around each call.
func inSpans(tracer trace.Tracer, inner call) call {
	return func(ctx context.Context, worker, i int) (bool, error) {
		ctx, span := tracer.Start(ctx, "select")
		defer span.End()
		return inner(ctx, worker, i)
	}
}

// recordingSpans records a share of the traces and discards them.
func recordingSpans(share float64) *sdk.TracerProvider {
	return sdk.NewTracerProvider(sdk.WithBatcher(nowhere{}), sdk.WithSampler(sdk.TraceIDRatioBased(share)))
}

// open opens a router with the observer. The returned function closes both.
func (o observer) open(ctx context.Context, m *shards.Map) (_ *router.Router, end func(), err error) {
	end = func() {}
	var tracers []pgx.QueryTracer
	if o.sampling > 0 {
		provider := recordingSpans(o.sampling)
		end = func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) } // its exporter has no errors
		tracers = append(tracers, tracing.New(tracing.Config{TracerProvider: provider}))
	}
	recorder := metrics.New(metrics.Config{})
	if o.metrics {
		tracers = append(tracers, recorder)
	}
	r, err := openRouterWith(ctx, m, router.Config{Tracers: tracers})
	if err != nil {
		end()
		return nil, nil, err
	}
	shutdown := end
	end = func() {
		r.Close()
		shutdown()
	}
	if o.metrics {
		if err := prometheus.NewRegistry().Register(recorder.Collector(r)); err != nil {
			end()
			return nil, nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return r, end, nil
}

// nowhere is an exporter that discards spans.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                        { return nil }
