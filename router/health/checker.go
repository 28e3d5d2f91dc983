package health

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/operation"
)

const (
	defaultTimeout = 2 * time.Second
	defaultMaxAge  = time.Second
)

// All is a [Config].Need that means all hosts.
const All = -1

// Config says when a service is ready.
type Config struct {
	// Need is how many of the hosts with shards must answer. All means all of them. Defaults to 1.
	Need int

	// Timeout is how long hosts have to answer. Defaults to 2 s.
	Timeout time.Duration

	// MaxAge is how long a report is used again. Defaults to 1 s.
	MaxAge time.Duration

	// Addresses adds Host.Primary to the report. Defaults to false, because many may be able to read a probe.
	Addresses bool
}

// Checker checks the hosts of a router. It is an http.Handler for paths that end in /healthz and /readyz. It is safe for
// concurrent use. Concurrent callers share one check.
type Checker struct {
	router *router.Router
	cfg    Config

	mu      sync.Mutex // guards the fields below
	report  Report
	asked   time.Time     // time of the last check; zero if there was none
	pending chan struct{} // closed at the end of the check under way; nil if none is
}

// New returns a checker of a router.
func New(r *router.Router, cfg Config) *Checker {
	if cfg.Need == 0 {
		cfg.Need = 1
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.MaxAge <= 0 {
		cfg.MaxAge = defaultMaxAge
	}
	return &Checker{router: r, cfg: cfg}
}

// Check returns a report on the hosts that is at most Config.MaxAge old. It waits at most Config.Timeout. If a check is under way, it
// waits for that one until ctx ends. A check that has begun goes on when ctx ends.
func (c *Checker) Check(ctx context.Context) (Report, error) {
	for {
		c.mu.Lock()
		if !c.asked.IsZero() && time.Since(c.asked) < c.cfg.MaxAge {
			defer c.mu.Unlock()
			return c.report, nil
		}
		pending := c.pending
		if pending == nil {
			c.pending = make(chan struct{})
			c.mu.Unlock()
			return c.ask(ctx), nil
		}
		c.mu.Unlock()
		select {
		case <-pending:
		case <-ctx.Done():
			return Report{}, ctx.Err()
		}
	}
}

// ask checks the hosts. It goes on when ctx ends, because other callers may wait for the same check.
func (c *Checker) ask(ctx context.Context) Report {
	report := c.look(context.WithoutCancel(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report, c.asked = report, time.Now()
	close(c.pending)
	c.pending = nil
	return report
}

// look queries all hosts.
func (c *Checker) look(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	theMap := c.router.Map()
	answers := c.router.PingEach(ctx)
	on := map[string]int{}
	for n := range theMap.All().All() {
		on[theMap.Host(n).Name]++
	}
	report := Report{Cluster: theMap.Config().Cluster}
	state := c.router.MapState()
	report.MapVersion, report.MapStale, report.MapStaleSince = state.Version, state.Err != nil, state.ErrAt
	up, counted := 0, 0
	stats := map[string]router.HostStats{}
	for _, s := range c.router.Stats() {
		stats[s.Host] = s
	}
	replicas := map[string][]Replica{}
	for _, s := range c.router.ReadStats() {
		replicas[s.Host] = replicasOf(&s)
	}
	for _, a := range answers {
		s := stats[a.Host]
		h := Host{
			Host: a.Host, Up: a.Err == nil, Error: operation.Classify(a.Err),
			Connections: s.Conns, Idle: s.Idle, Waiting: s.Waiting, ShardCount: on[a.Host],
			DownSince: s.DownSince, RoleChanges: s.RoleChanges, Rivals: s.Rivals, Replicas: replicas[a.Host],
		}
		if s.Breaker != router.BreakerClosed {
			h.Breaker = s.Breaker.String()
		}
		if c.cfg.Addresses {
			h.Primary = s.Primary
		}
		if h.Up {
			h.Milliseconds = float64(a.Took.Microseconds()) / 1000
		}
		if h.ShardCount > 0 {
			counted++
			if h.Up {
				up++
			}
		}
		report.Hosts = append(report.Hosts, h)
	}
	need := c.cfg.Need
	if need == All || need > counted {
		need = counted
	}
	report.Ready = up >= need
	return report
}

// ServeHTTP answers GET and HEAD of paths that end in /healthz or /readyz.
func (c *Checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "expected GET", http.StatusMethodNotAllowed)
	case strings.HasSuffix(r.URL.Path, "/healthz"):
		answer(w, http.StatusOK, map[string]bool{"alive": true})
	case strings.HasSuffix(r.URL.Path, "/readyz"):
		report, err := c.Check(r.Context())
		if err != nil {
			return // the client has left
		}
		code := http.StatusOK
		if !report.Ready {
			code = http.StatusServiceUnavailable
		}
		answer(w, code, report)
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(what) // the client may have left
}
