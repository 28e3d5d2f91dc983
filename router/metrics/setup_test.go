package metrics_test

import (
	"context"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m), goleak.IgnoreTopFunction("os/signal.loop")))
}

var migrations = fstest.MapFS{"001_photos.sql": {Data: []byte(`create table photos (id bigint primary key, title text)`)}}

// bundle is a router on two hosts, and the registry of its metrics.
type bundle struct {
	*router.Router
	registry *prometheus.Registry
	recorder *metrics.Recorder
}

// setup makes a router, with one connection to each host.
func setup(t testing.TB, count int, change func(*shards.Config)) (*bundle, context.Context) {
	t.Helper()
	cfg := shardtest.Config{Shards: count, Migrations: migrations}
	if change != nil {
		var c shards.Config
		c.Hosts = make([]shards.Host, 2)
		change(&c)
		cfg.Strategy = c.Strategy
	}
	m := shardtest.New(t, cfg).Map
	if change != nil {
		c := m.Config()
		c.Hosts = append([]shards.Host(nil), c.Hosts...)
		change(&c)
		var err error
		if m, err = c.Map(); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, router.Config{Map: m, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = 1
		return nil
	}})
}

// testLimit bounds whatever a test waits for.
const testLimit = 5 * time.Minute

// open makes a router whose metrics are in a registry.
func open(t testing.TB, cfg router.Config) (*bundle, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	b := &bundle{registry: prometheus.NewPedanticRegistry(), recorder: metrics.New(metrics.Config{TraceOf: traceOf})}
	cfg.Tracers = []pgx.QueryTracer{b.recorder}
	cfg.Failover.FailAfter = testLimit // that the machine is busy is no sign that a host is down
	var err error
	if b.Router, err = router.New(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	b.registry.MustRegister(b.recorder.Collector(b.Router))
	return b, ctx
}

func (b *bundle) shard(t testing.TB, n int) router.Shard {
	t.Helper()
	s, err := b.ForShard(shards.Number(n))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value returns the value of a series, or how many values a histogram has seen, by its name and some of its labels. It
// is -1 if there is no such series.
func (b *bundle) value(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "kiloshard_router_"+name {
			continue
		}
	next:
		for _, metric := range family.GetMetric() {
			has := map[string]string{}
			for _, label := range metric.GetLabel() {
				has[label.GetName()] = label.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if has[labels[i]] != labels[i+1] {
					continue next
				}
			}
			if h := metric.GetHistogram(); h != nil {
				return float64(h.GetSampleCount())
			}
			return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return -1
}

// series returns how many series there are.
func (b *bundle) series(t testing.TB) (n int) {
	t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		n += len(family.GetMetric())
	}
	return n
}
