package metrics

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/router/operation"
)

// Config is the config of a [Recorder].
type Config struct {
	// Buckets are the upper bounds of the histograms of time, in seconds. Defaults to bounds from 0.25 ms to 10 s.
	Buckets []float64

	// TraceOf returns the ID of the trace that an operation belongs to, from its context, for the exemplars of operation_seconds; empty
	// for an operation without a recorded trace. Defaults to no exemplars. With OpenTelemetry:
	//
	//	func(ctx context.Context) string {
	//		if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
	//			return span.TraceID().String()
	//		}
	//		return ""
	//	}
	TraceOf func(context.Context) string
}

// defaultBuckets begin at the time of a statement on the same machine.
var defaultBuckets = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Recorder counts the operations of one router, as one of its [router.Config].Tracers. It is safe for concurrent use.
type Recorder struct {
	operations, waits *prometheus.HistogramVec
	errors            *prometheus.CounterVec
	fanouts           []prometheus.Observer // by kind
	fanoutTimes       *prometheus.HistogramVec
	incomplete        *prometheus.CounterVec
	traceOf           func(context.Context) string // nil for no exemplars

	hosts atomic.Pointer[map[string]*host] // by name; the map is replaced, never changed
	mu    sync.Mutex                       // held to replace it
}

// host has the series of one host.
type host struct {
	byKind []prometheus.Observer
	wait   prometheus.Observer
}

var (
	_ pgx.QueryTracer        = (*Recorder)(nil)
	_ pgx.BatchTracer        = (*Recorder)(nil)
	_ pgx.CopyFromTracer     = (*Recorder)(nil)
	_ operation.UnsentTracer = (*Recorder)(nil)
	_ many.Tracer            = (*Recorder)(nil)
)

// New returns a recorder for one router.
func New(cfg Config) *Recorder {
	if len(cfg.Buckets) == 0 {
		cfg.Buckets = defaultBuckets
	}
	m := &Recorder{
		traceOf: cfg.TraceOf,
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kiloshard_router_operation_seconds", Buckets: cfg.Buckets,
			Help: "Time from a call to its answer, with the wait for a connection.",
		}, []string{"host", "kind"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kiloshard_router_wait_seconds", Buckets: cfg.Buckets,
			Help: "Time that calls waited for a connection.",
		}, []string{"host"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kiloshard_router_errors_total",
			Help: "Operations that failed, by the class of the SQLSTATE or another class of error.",
		}, []string{"host", "class"}),
		fanoutTimes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kiloshard_router_fanout_seconds", Buckets: cfg.Buckets,
			Help: "Time of work over many shards, until the last of them has answered.",
		}, []string{"kind"}),
		incomplete: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kiloshard_router_fanouts_incomplete_total",
			Help: "Work over many shards that was not done on all of them.",
		}, []string{"kind"}),
	}
	for _, kind := range many.Kinds() {
		m.fanouts = append(m.fanouts, m.fanoutTimes.WithLabelValues(kind.String()))
		m.incomplete.WithLabelValues(kind.String())
	}
	m.hosts.Store(&map[string]*host{})
	return m
}

// host returns the series of a host.
func (m *Recorder) host(name string) *host {
	if h := (*m.hosts.Load())[name]; h != nil {
		return h
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := *m.hosts.Load()
	if h := known[name]; h != nil {
		return h
	}
	h := &host{wait: m.waits.WithLabelValues(name)}
	for _, kind := range operation.Kinds() {
		h.byKind = append(h.byKind, m.operations.WithLabelValues(name, kind.String()))
	}
	more := maps.Clone(known)
	more[name] = h
	m.hosts.Store(&more)
	return h
}

// keep drops the series of all other hosts.
func (m *Recorder) keep(names map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := maps.Clone(*m.hosts.Load())
	for name := range left {
		if names[name] {
			continue
		}
		delete(left, name)
		of := prometheus.Labels{"host": name}
		m.operations.DeletePartialMatch(of)
		m.waits.DeletePartialMatch(of)
		m.errors.DeletePartialMatch(of)
	}
	m.hosts.Store(&left)
}

// took observes how long an operation took, in seconds, with the trace that shows it.
func (m *Recorder) took(ctx context.Context, of prometheus.Observer, seconds float64) {
	if m.traceOf != nil {
		if id := m.traceOf(ctx); id != "" {
			of.(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, prometheus.Labels{"trace_id": id}) //nolint:forcetypeassert // histograms are
			return
		}
	}
	of.Observe(seconds)
}

// observe counts the operation of a context.
func (m *Recorder) observe(ctx context.Context, err error) {
	op, ok := operation.Of(ctx)
	if !ok {
		return
	}
	h := m.host(op.Host)
	m.took(ctx, h.byKind[op.Kind], time.Since(op.Began).Seconds())
	if !op.Held && op.Together > 0 {
		h.wait.Observe(op.Waited.Seconds())
	}
	if err != nil {
		m.errors.WithLabelValues(op.Host, class(err)).Inc()
	}
}

// TraceQueryStart does nothing: an operation has its start time.
func (m *Recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

// TraceQueryEnd counts a statement.
func (m *Recorder) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	m.observe(ctx, data.Err)
}

// TraceBatchStart does nothing.
func (m *Recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery does nothing: a batch is one operation.
func (m *Recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd counts a batch.
func (m *Recorder) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	m.observe(ctx, data.Err)
}

// TraceCopyFromStart does nothing.
func (m *Recorder) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return ctx
}

// TraceCopyFromEnd counts a CopyFrom.
func (m *Recorder) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	m.observe(ctx, data.Err)
}

// TraceUnsent counts an operation that was not sent.
func (m *Recorder) TraceUnsent(ctx context.Context, err error) { m.observe(ctx, err) }

// TraceMany counts work over many shards. Its operations are counted, too.
func (m *Recorder) TraceMany(_ context.Context, w many.Work) {
	m.fanouts[w.Kind].Observe(w.Took.Seconds())
	if w.Failed+w.NotAttempted > 0 {
		m.incomplete.WithLabelValues(w.Kind.String()).Inc()
	}
}
