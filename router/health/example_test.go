package health_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

var (
	timeOf = regexp.MustCompile(`\d{4}-\d\d-\d\dT[^"]*`)
	dialOf = regexp.MustCompile(`"connections":[01]`) // 1 while it is being tried once more
)

// A service answers the probes of whatever runs it. Here its only host is down.
func Example() {
	hosts := []shards.Host{{Name: "pg-a", DSN: "postgres://app:secret@127.0.0.1:1/photos"}}
	m, err := shards.Config{Cluster: "test", Shards: 64, Epoch: shardtest.Epoch, Hosts: hosts, Placement: shards.Evenly(64, hosts)}.Map()
	if err != nil {
		log.Fatal(err)
	}
	r, err := router.New(context.Background(), router.Config{Map: m})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	checker := health.New(r, health.Config{})
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", checker)
	mux.Handle("GET /readyz", checker)

	for _, path := range []string{"/healthz", "/readyz"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Print(path, " ", w.Code, " ", dialOf.ReplaceAllString(timeOf.ReplaceAllString(w.Body.String(), "…"), `"connections":…`))
	}
	// Output:
	// /healthz 200 {"alive":true}
	// /readyz 503 {"ready":false,"cluster":"test","map_version":0,"hosts":[{"host":"pg-a","up":false,"error":"unreachable","breaker":"open","down_since":"…","connections":…,"idle":0,"waiting":0,"shard_count":64}]}
}
