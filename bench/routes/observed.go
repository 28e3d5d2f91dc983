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

// observers are kinds of observability. Sampling is the share of the traces that are recorded; 0 for no tracing.
var observers = []struct {
	what     string
	sampling float64
}{
	{"metrics", 0},
	{"metrics, 1% of spans", 0.01},
	{"metrics, all spans", 1},
}

// observed compares routers with observability to one without, which takes the place of pgxpool. Bare spans are the cost of
// the tracing library alone: a span without attributes around each call of the router without observability.
func observed(ctx context.Context, s *stage) error {
	m, err := s.cluster(ctx, fewShards, 1)
	if err != nil {
		return err
	}
	off, err := s.router(ctx, m)
	if err != nil {
		return err
	}
	plain := selects.routed(off, m.Len())
	c := comparison{
		sides:   []call{plain, inSpans(s.recordSpans(ctx, 1).Tracer("bench"), plain)},
		rows:    []row{{"select, bare spans around the call", 1, 0}},
		metrics: []string{perSecond, p50, p99},
	}
	for _, o := range observers {
		r, err := s.observedRouter(ctx, m, o.sampling)
		if err != nil {
			return err
		}
		c.rows = append(c.rows, row{"select, " + o.what, len(c.sides), 0})
		c.sides = append(c.sides, selects.routed(r, m.Len()))
	}
	for _, goroutines := range []int{1, 64, 256} {
		s.progress("%d goroutines", goroutines)
		c.goroutines = goroutines
		if err := s.compare(ctx, c); err != nil {
			return err
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

// recordSpans records a share of the traces and discards them, until the stage closes.
func (s *stage) recordSpans(ctx context.Context, share float64) *sdk.TracerProvider {
	provider := sdk.NewTracerProvider(sdk.WithBatcher(discard{}), sdk.WithSampler(sdk.TraceIDRatioBased(share)))
	s.closeLater(func() { _ = provider.Shutdown(context.WithoutCancel(ctx)) }) // its exporter has no errors
	return provider
}

// observedRouter opens a router with metrics, and with traces if sampling is above 0.
func (s *stage) observedRouter(ctx context.Context, m *shards.Map, sampling float64) (*router.Router, error) {
	var tracers []pgx.QueryTracer
	if sampling > 0 {
		tracers = append(tracers, tracing.New(tracing.Config{TracerProvider: s.recordSpans(ctx, sampling)}))
	}
	recorder := metrics.New(metrics.Config{})
	r, err := s.routerWith(ctx, m, router.Config{Tracers: append(tracers, recorder)})
	if err != nil {
		return nil, err
	}
	if err := prometheus.NewRegistry().Register(recorder.Collector(r)); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return r, nil
}

// discard is an exporter that discards spans.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                        { return nil }
