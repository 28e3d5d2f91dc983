package tracing_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/tracing"
	"github.com/kiloshard/kiloshard/shards"
)

// A service has a span for each of its statements, here in memory, else by an exporter such as OTLP's. That nobody
// answers at this host shows in the span, too.
func Example() {
	ctx := context.Background()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))

	hosts := []shards.Host{{Name: "pg-a", DSN: "postgres://app:secret@127.0.0.1:1/photos"}}
	m, err := shards.Config{Cluster: "test", Shards: 64, Epoch: epoch, Hosts: hosts, Placement: shards.Evenly(64, hosts)}.Map()
	if err != nil {
		log.Fatal(err)
	}
	r, err := router.New(ctx, router.Config{
		Map:     m,
		Tracers: []pgx.QueryTracer{tracing.New(tracing.Config{TracerProvider: provider})},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	shard, err := r.ForKey(ctx, shards.NumberKey(1042))
	if err != nil {
		log.Fatal(err)
	}
	_, err = shard.Exec(ctx, `insert into photos (id, owner) values ($1, $2)`, 1, 1042)
	fmt.Println("failed:", err != nil)
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name, span.Status.Code, span.Status.Description)
		for _, attr := range span.Attributes {
			if attr.Key != "kiloshard.waited" {
				fmt.Printf("  %s = %s\n", attr.Key, attr.Value.String())
			}
		}
	}
	// Output:
	// failed: true
	// INSERT photos Error unreachable
	//   db.system.name = postgresql
	//   db.namespace = photos|shard_00018
	//   kiloshard.shard = 18
	//   kiloshard.host = pg-a
	//   kiloshard.schema = shard_00018
	//   server.address = 127.0.0.1
	//   server.port = 1
	//   db.query.summary = INSERT photos
	//   error.type = unreachable
}
