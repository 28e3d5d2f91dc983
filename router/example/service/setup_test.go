package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/example/migrations"
	"github.com/kiloshard/kiloshard/router/example/service"
	"github.com/kiloshard/kiloshard/router/health"
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

// withDirectory returns the map with a directory as its strategy, whose tables are made.
func withDirectory(t *testing.T, m *shards.Map) *shards.Map {
	t.Helper()
	config := m.Config()
	config.Strategy = shards.Strategy{By: shards.Directory, Allocate: shards.Allocation{By: shards.LeastUsed}}
	config.Types = []shards.ObjectType{{Name: "board", Number: 1}}
	m, err := config.Map()
	if err == nil {
		_, err = provision.Create(t.Context(), provision.CreateConfig{Map: m})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// api is a running service, as its clients see it.
type api struct {
	t       *testing.T
	url     string
	router  *router.Router
	service *service.Service
}

// setup runs the service on a cluster of its own.
func setup(t *testing.T) *api {
	t.Helper()
	m := shardtest.New(t, shardtest.Config{Shards: 8, Strategy: shards.Strategy{By: shards.Directory}, Migrations: migrations.For(8)}).Map
	return serve(t, withDirectory(t, m))
}

// testLimit bounds whatever a test waits for.
const testLimit = 5 * time.Minute

// serve runs the service on the cluster of a map.
func serve(t *testing.T, m *shards.Map) *api {
	t.Helper()
	return serveWithin(t, m, testLimit)
}

// serveWithin runs it with a limit of time for each request.
func serveWithin(t *testing.T, m *shards.Map, limit time.Duration) *api {
	t.Helper()
	r, err := router.New(t.Context(), router.Config{Map: m, Failover: router.Failover{FailAfter: testLimit}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s, err := service.New(t.Context(), service.Config{Router: r, StoreShards: 8, TimeLimit: limit})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s)
	checker := health.New(r, health.Config{Timeout: testLimit})
	mux.Handle("GET /readyz", s.Ready(checker))
	mux.Handle("GET /healthz", checker)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &api{t, server.URL, r, s}
}

// reply is an answer of the service.
type reply struct {
	Status     int
	RetryAfter string

	ID         shards.ID `json:"id"`
	User       shards.ID `json:"user"`
	Name       string
	Title      string
	Likes      int
	At         time.Time
	Photos     []reply
	Next       shards.ID `json:"next"`
	Incomplete bool
	Friends    []string
	Kept       []string
	Notes      []struct{ Text string }
	Error      string
	Hosts      []health.Host
}

// send sends a request. It may be called by any goroutine.
func (a *api) send(method, path, key, body string) (reply, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{Status: response.StatusCode, RetryAfter: response.Header.Get("Retry-After")}
	if len(text) == 0 {
		return r, nil
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&r); err != nil {
		return r, fmt.Errorf("%s %s: %d %s: %w", method, path, r.Status, text, err)
	}
	return r, nil
}

// do sends a request that is to have an answer of a status.
func (a *api) do(status int, method, path, key, body string) reply {
	a.t.Helper()
	r, err := a.send(method, path, key, body)
	if err != nil {
		a.t.Fatal(err)
	}
	if r.Status != status {
		a.t.Fatalf("%s %s: %d %q, expected %d", method, path, r.Status, r.Error, status)
	}
	return r
}

var made atomic.Int64 // keys and names of the tests

func newKey() string { return fmt.Sprint("key ", made.Add(1)) }

// signUp makes users.
func (a *api) signUp(count int) []shards.ID {
	a.t.Helper()
	users := make([]shards.ID, count)
	for i := range users {
		users[i] = a.do(http.StatusCreated, "POST", "/users", newKey(), fmt.Sprintf(`{"name": "user %d"}`, made.Add(1))).ID
	}
	return users
}

func (a *api) post(user shards.ID, title string) reply {
	a.t.Helper()
	return a.do(http.StatusCreated, "POST", fmt.Sprintf("/users/%d/photos", user), newKey(), fmt.Sprintf(`{"title": %q}`, title))
}

func (a *api) follow(user shards.ID, friends ...shards.ID) {
	a.t.Helper()
	for _, friend := range friends {
		a.do(http.StatusNoContent, "POST", fmt.Sprintf("/users/%d/follow/%d", user, friend), "", "")
	}
}

func ids(photos []reply) []shards.ID {
	all := make([]shards.ID, len(photos))
	for i, photo := range photos {
		all[i] = photo.ID
	}
	return all
}
