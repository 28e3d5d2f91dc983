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

// All is a [Config].Need of all hosts.
const All = -1

// Config says what ready means.
type Config struct {
	// Need is how many hosts must answer, those without a shard left aside; All means all of them. Defaults to 1.
	Need int

	// Timeout is how long hosts have to answer. Defaults to 2 s.
	Timeout time.Duration

	// MaxAge is how long an answer is given again without asking the hosts. Defaults to 1 s.
	MaxAge time.Duration

	// Addresses has Host.Primary be told. Defaults to leaving addresses out: a probe is often open to many.
	Addresses bool
}

// Checker asks the hosts of a router. It is an http.Handler: of paths that end in /healthz and /readyz. It is safe for
// concurrent use, and has hosts asked once at a time, however many want to know.
type Checker struct {
	router *router.Router
	cfg    Config

	mu      sync.Mutex // guards what follows
	report  Report
	asked   time.Time     // when the hosts answered last; the zero time before
	pending chan struct{} // closed when those who are asked now have answered; nil if none are
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

// Check returns how the hosts are, or were up to Config.MaxAge ago. It waits for Config.Timeout at most. ctx governs
// whether hosts are asked at all; who asks when others do already waits for their answer.
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

// ask asks the hosts, also for those who have come since, and so goes on when ctx ends.
func (c *Checker) ask(ctx context.Context) Report {
	report := c.look(context.WithoutCancel(ctx))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report, c.asked = report, time.Now()
	close(c.pending)
	c.pending = nil
	return report
}

// look asks all hosts.
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
			DownSince: s.DownSince, RoleChanges: s.RoleChanges, Replicas: replicas[a.Host],
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
			return // nobody waits for it any more
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
	_ = json.NewEncoder(w).Encode(what) // who asked may have left
}
