package health_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/health"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	os.Exit(leak.Check(shardtest.Run(m), goleak.IgnoreTopFunction("os/signal.loop")))
}

// silent returns the DSN of a host that takes connections and never says anything.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return "postgres://app:hunter2@" + listener.Addr().String() + "/app"
}

// setup returns a router on two hosts, of which the second may be at another DSN.
func setup(t *testing.T, second string, failover router.Failover) *router.Router {
	t.Helper()
	c := shardtest.New(t, shardtest.Config{Shards: 4}).Map.Config()
	c.Hosts = append([]shards.Host(nil), c.Hosts...)
	if second != "" {
		c.Hosts[1].DSN = second
	}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	r, err := router.New(t.Context(), router.Config{Map: m, Failover: failover, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = 2
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func get(t *testing.T, c *health.Checker, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	const nobody = "postgres://app:hunter2@127.0.0.1:1/app"
	for _, test := range []struct {
		name   string
		second string
		cfg    health.Config
		code   int
		err    string // of the second host
		state  string // of its breaker
	}{
		{"all up", "", health.Config{Need: health.All, Timeout: time.Minute}, 200, "", ""},
		{"one down", nobody, health.Config{Timeout: time.Minute}, 200, "unreachable", "open"},
		{"one down, both needed", nobody, health.Config{Need: 2, Timeout: time.Minute}, 503, "unreachable", "open"},
		{"one down, all needed", nobody, health.Config{Need: health.All, Timeout: time.Minute}, 503, "unreachable", "open"},
		{"one hangs", silent(t), health.Config{Need: health.All, Timeout: time.Minute}, 503, "unreachable", "open"},
		{"one hangs for less than a host may", silent(t), health.Config{Need: health.All, Timeout: 5 * time.Second}, 503, "timeout", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			failover := router.Failover{FailAfter: time.Hour}
			if test.name == "one hangs" {
				failover.FailAfter = 5 * time.Second
			}
			r := setup(t, test.second, failover)
			s, err := r.ForShard(0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Exec(t.Context(), `select 1`); err != nil { // so that it has a connection
				t.Fatal(err)
			}
			c := health.New(r, test.cfg)
			code, body := get(t, c, "/service/readyz")
			if code != test.code {
				t.Errorf("got %d, want %d: %s", code, test.code, body)
			}
			var report health.Report
			if err := json.Unmarshal([]byte(body), &report); err != nil {
				t.Fatal(err)
			}
			if len(report.Hosts) != 2 || report.Ready != (code == 200) || report.Cluster != "test" {
				t.Fatalf("got %s", body)
			}
			a, b := report.Hosts[0], report.Hosts[1]
			if !a.Up || a.ShardCount != 2 || a.Connections != 1 {
				t.Errorf("got %+v", a)
			}
			if b.Up != (test.err == "") || b.Error != test.err || b.Breaker != test.state || b.DownSince.IsZero() != (test.state == "") {
				t.Errorf("got %+v", b)
			}
			for _, secret := range []string{"hunter2", "127.0.0.1", "postgres"} {
				if strings.Contains(body, secret) {
					t.Errorf("%q is in the answer: %s", secret, body)
				}
			}
			if code, _ := get(t, c, "/healthz"); code != 200 {
				t.Errorf("alive: got %d", code)
			}
		})
	}
}

// However many ask, a host is asked once.
func TestStorm(t *testing.T) {
	t.Parallel()
	r := setup(t, "", router.Failover{})
	c := health.New(r, health.Config{MaxAge: time.Hour, Timeout: time.Minute})
	var storm sync.WaitGroup
	for range 100 {
		storm.Go(func() {
			if code, body := get(t, c, "/readyz"); code != 200 {
				t.Errorf("got %d: %s", code, body)
			}
		})
	}
	storm.Wait()
	for _, s := range r.Stats() {
		if s.Calls != 1 {
			t.Errorf("%s was asked %d times", s.Host, s.Calls)
		}
	}
}

// An answer that is old is not given again.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	r := setup(t, "", router.Failover{})
	c := health.New(r, health.Config{MaxAge: time.Nanosecond, Timeout: time.Minute})
	for range 3 {
		get(t, c, "/readyz")
	}
	if calls := r.Stats()[0].Calls; calls != 3 {
		t.Errorf("the host was asked %d times, expected 3", calls)
	}
}

// When no host answers it is not ready, and still alive.
func TestClosed(t *testing.T) {
	t.Parallel()
	r := setup(t, "", router.Failover{})
	r.Close()
	c := health.New(r, health.Config{})
	if code, body := get(t, c, "/readyz"); code != 503 {
		t.Errorf("got %d: %s", code, body)
	}
	if code, _ := get(t, c, "/healthz"); code != 200 {
		t.Errorf("got %d", code)
	}
	if code, _ := get(t, c, "/other"); code != 404 {
		t.Errorf("got %d", code)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/readyz", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("got %d", w.Code)
	}
}
