package tracing_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m), goleak.IgnoreTopFunction("os/signal.loop")))
}

var epoch = shardtest.Epoch

// migrations make a table in each shard.
var migrations = fstest.MapFS{"001_photos.sql": {Data: []byte(`create table photos (id bigint primary key, title text)`)}}

// options say what a test's router is like.
type options struct {
	tracing tracing.Config
	sampler sdk.Sampler // defaults to all
	conns   int32       // defaults to 2
	hosts   func([]shards.Host)
}

// bundle is a router on 4 shards of 2 hosts, and the spans that have ended.
type bundle struct {
	*router.Router
	spans    *tracetest.InMemoryExporter
	provider *sdk.TracerProvider
}

// testLimit bounds whatever a test waits for.
const testLimit = 5 * time.Minute

func setup(t *testing.T, opts options) (*bundle, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	b := &bundle{spans: tracetest.NewInMemoryExporter()}
	if opts.sampler == nil {
		opts.sampler = sdk.AlwaysSample()
	}
	b.provider = sdk.NewTracerProvider(sdk.WithSyncer(b.spans), sdk.WithSampler(opts.sampler))
	opts.tracing.TracerProvider = b.provider
	cluster := shardtest.New(t, shardtest.Config{Shards: 4, Hosts: 2, Migrations: migrations})
	m := cluster.Map
	if opts.hosts != nil {
		c := m.Config()
		c.Hosts = append([]shards.Host(nil), c.Hosts...)
		opts.hosts(c.Hosts)
		var err error
		if m, err = c.Map(); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	b.Router, err = router.New(ctx, router.Config{
		Map: m, Tracers: []pgx.QueryTracer{tracing.New(opts.tracing)}, Failover: router.Failover{FailAfter: testLimit, Wait: testLimit},
		Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
			if cfg.MaxConns = opts.conns; opts.conns == 0 {
				cfg.MaxConns = 2
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b, ctx
}

func (b *bundle) shard(t *testing.T, n shards.Number) router.Shard {
	t.Helper()
	s, err := b.ForShard(n)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// take returns the spans that have ended, but for those of the tests, and forgets them.
func (b *bundle) take() (made []tracetest.SpanStub) {
	for _, span := range b.spans.GetSpans() {
		if span.InstrumentationScope.Name != "test" {
			made = append(made, span)
		}
	}
	b.spans.Reset()
	return made
}

// caller returns a context with a span of the test's.
func (b *bundle) caller(ctx context.Context) (context.Context, trace.Span) {
	return b.provider.Tracer("test").Start(ctx, "request")
}

// brief returns of each span its name, shard and error.
func brief(spans []tracetest.SpanStub) (all []string) {
	for _, span := range spans {
		text := fmt.Sprintf("%s on %v", span.Name, value(span, "kiloshard.shard"))
		if class := value(span, "error.type"); class != nil {
			text += fmt.Sprintf(": %v", class)
		}
		all = append(all, text)
	}
	return all
}

// value returns an attribute of a span, nil if it has none.
func value(span tracetest.SpanStub, key attribute.Key) any {
	for _, attr := range span.Attributes {
		if attr.Key == key {
			return attr.Value.AsInterface()
		}
	}
	return nil
}
