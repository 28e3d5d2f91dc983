package metrics_test

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A service gives its registry the figures of its router.
func Example() {
	ctx := context.Background()
	hosts := []shards.Host{{Name: "pg-a", DSN: "postgres://app:secret@127.0.0.1:1/photos"}}
	m, err := shards.Config{Cluster: "test", Shards: 64, Epoch: shardtest.Epoch, Hosts: hosts, Placement: shards.Evenly(64, hosts)}.Map()
	if err != nil {
		log.Fatal(err)
	}

	recorder := metrics.New(metrics.Config{})
	r, err := router.New(ctx, router.Config{Map: m, Tracers: []pgx.QueryTracer{recorder}})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(recorder.Collector(r))
	http.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "kiloshard_router_shards" {
			series := family.GetMetric()[0]
			for _, label := range series.GetLabel() {
				fmt.Print(label.GetName(), "=", label.GetValue(), " ")
			}
			fmt.Println(series.GetGauge().GetValue())
		}
	}
	// Output: cluster=test host=pg-a 64
}
