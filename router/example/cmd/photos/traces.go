package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// traces are where the spans of requests, and of what the router does for them, go.
type traces struct {
	provider trace.TracerProvider
	file     *os.File                 // nil if there are no traces
	sdk      *sdktrace.TracerProvider // as well
}

// openTraces has spans written to a file, as JSON, or nowhere if it has no name. A real service sends them to a collector:
// put the exporter for that in the place of this one.
func openTraces(path string) (*traces, error) {
	if path == "" {
		return &traces{provider: noop.NewTracerProvider()}, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(file))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	sdk := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithResource(resource.NewSchemaless(semconv.ServiceName("photos"))),
	)
	return &traces{sdk, file, sdk}, nil
}

// of gives each request of a handler a span, around those of its statements.
func (t *traces) of(handler http.Handler) http.Handler {
	return otelhttp.NewHandler(handler, "request", otelhttp.WithTracerProvider(t.provider))
}

// close writes what has not been written yet.
func (t *traces) close() error {
	if t.sdk == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(t.sdk.Shutdown(ctx), t.file.Close())
}
