package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/example/service"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// connsPerHost is the size of a pool. Where there are several processes of a service, they divide what a host can take.
const connsPerHost = 16

// parts are what the program is made of.
type parts struct {
	traces  *traces
	store   mapstore.Store
	router  *router.Router
	service *service.Service
	handler http.Handler // the service, its health and its metrics
}

// assemble puts the program together. This is the file to change for other metrics, traces, passwords or pools. After an
// error nothing is left open.
func assemble(ctx context.Context, f files, drain time.Duration, logger *slog.Logger) (_ *parts, err error) {
	p := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if p.traces, err = openTraces(f.traces); err != nil {
		return nil, err
	}
	recorder := metrics.New(metrics.Config{})
	cfg, err := shards.Load(f.config, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	p.store, err = mapstore.Open(ctx, cfg, mapstore.Options{Path: f.config, Lookup: os.LookupEnv, Logger: logger})
	if err != nil {
		return nil, err
	}
	p.router, err = router.New(ctx, router.Config{
		Maps: mapstore.NewSource(mapstore.SourceConfig{
			Store: p.store, Cluster: cfg.Cluster, Cache: f.mapCopy, Lookup: os.LookupEnv, Logger: logger,
		}),
		// Less than a request may take, so that it is told that nothing was done before its time is over.
		Failover: router.Failover{Wait: 3 * time.Second},
		Tracers: []pgx.QueryTracer{
			recorder,
			tracing.New(tracing.Config{TracerProvider: p.traces.provider}),
		},
		Logger: logger,
		Pool: func(_ shards.Host, pool *pgxpool.Config) error {
			pool.MaxConns = connsPerHost
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		recorder.Collector(p.router),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	p.service, err = service.New(ctx, service.Config{Router: p.router, Drain: drain, Metrics: registry, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("the service: %w", err)
	}
	checker := health.New(p.router, health.Config{})
	mux := http.NewServeMux()
	mux.Handle("/", p.traces.of(p.service))
	mux.Handle("GET /healthz", checker)
	mux.Handle("GET /readyz", p.service.Ready(checker))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	p.handler = mux
	return p, nil
}

// close ends what assemble has begun, the last first. No request may be under way any more.
func (p *parts) close() error {
	var errs []error
	if p.router != nil {
		p.router.Close()
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	if p.traces != nil {
		errs = append(errs, p.traces.close())
	}
	return errors.Join(errs...)
}
