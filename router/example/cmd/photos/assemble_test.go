package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	code := shardtest.Run(m)
	http.DefaultClient.CloseIdleConnections()
	os.Exit(leak.Check(code))
}

// With a map in kiloshard.yaml itself, the program serves its requests, its health and its metrics.
func TestAssemble(t *testing.T) {
	t.Parallel()
	config := shardtest.New(t, shardtest.Config{Shards: 64, Strategy: shards.Strategy{By: shards.Directory}, Migrations: migrations.Files}).Map.Config()
	config.Types = []shards.ObjectType{{Name: "board", Number: 1}}
	m, err := config.Map()
	if err == nil {
		_, err = provision.Create(t.Context(), provision.CreateConfig{Map: m})
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := config.YAML()
	if err != nil {
		t.Fatal(err)
	}
	f := files{config: filepath.Join(t.TempDir(), "kiloshard.yaml"), traces: filepath.Join(t.TempDir(), "traces")}
	if err := os.WriteFile(f.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := assemble(t.Context(), f, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(p.handler)
	defer func() {
		server.Close()
		if err := p.close(); err != nil {
			t.Error(err)
		}
		checkTraces(t, f.traces)
	}()

	for _, c := range []struct {
		method, path, body string
		status             int
		part               string
	}{
		{"GET", "/healthz", "", 200, ""},
		{"GET", "/readyz", "", 200, `"cluster":"`},
		{"POST", "/users", `{"name": "ann"}`, 201, `"name":"ann"`},
		{"GET", "/users/7", "", 404, "no such thing"},
		{"GET", "/metrics", "", 200, `kiloshard_router_shards{`},
		{"GET", "/metrics", "", 200, `kiloshard_router_operation_seconds_count{`},
		{"GET", "/metrics", "", 200, `photos_request_seconds_count{route="POST /users",status="201"} 1`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Idempotency-Key", "k")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != c.status || !strings.Contains(string(body), c.part) {
			t.Errorf("%s %s: %d %s, expected %d and %q", c.method, c.path, response.StatusCode, body, c.status, c.part)
		}
	}
}

// checkTraces wants to see the span of a sign-up, and inside it that of its insert, with the shard.
func checkTraces(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type span struct {
		Name                string
		SpanContext, Parent struct{ TraceID, SpanID string }
		Attributes          []struct{ Key string }
	}
	spans := map[string]span{}
	for line := range bytes.Lines(text) {
		var s span
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		spans[s.Name] = s
	}
	request, insert := spans["POST /users"], spans["INSERT users"]
	if request.Name == "" || insert.Name == "" || insert.Parent.SpanID != request.SpanContext.SpanID {
		t.Errorf("no insert inside of a sign-up is in the traces:\n%s", text)
	}
	if !slices.ContainsFunc(insert.Attributes, func(a struct{ Key string }) bool { return a.Key == "kiloshard.shard" }) {
		t.Errorf("the shard is not among %v", insert.Attributes)
	}
}

// What cannot be put together leaves nothing open; goleak would tell.
func TestAssembleFails(t *testing.T) {
	t.Parallel()
	f := files{config: filepath.Join(t.TempDir(), "kiloshard.yaml")}
	if _, err := assemble(context.Background(), f, 0, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("there is no config, and no error")
	}
	f.traces = filepath.Join(f.config, "traces")
	if _, err := assemble(context.Background(), f, 0, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("there is no folder for the traces, and no error")
	}
	f.traces = ""
	text := "cluster: photos\nstore: {kind: postgres, dsn: \"postgres://127.0.0.1:1/control\"}\n"
	if err := os.WriteFile(f.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := assemble(context.Background(), f, 0, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("there is no store, and no error")
	}
}
