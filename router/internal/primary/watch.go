package primary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

const (
	// standbyInterval is the probe interval of a host that is up.
	standbyInterval = time.Second
	// silentInterval is the probe interval of an address that did not answer and that no request needs.
	silentInterval = 5 * time.Second
	// downInterval is the pause after a probe of a host that is down.
	downInterval = 100 * time.Millisecond
	// downStep is how long a probe of a host that is down waits before it also tries another connection.
	downStep = 200 * time.Millisecond
	// refusedFor is how long a refused connection counts as the answer for requests to a host with one address. It limits
	// how often many requests probe such a host.
	refusedFor = downInterval / 2
	// minInterval is the shortest time between two probes.
	minInterval = 5 * time.Millisecond
	// attemptsUp is the number of attempts of a probe before a host that is up counts as silent.
	attemptsUp = 3
	// closeLimit is the time limit for closing a connection.
	closeLimit = 5 * time.Second
)

// Config is the config of a [Watch].
type Config struct {
	Host string // for the log

	// Conn is how to connect, to all addresses of the host. Its tracer is not used.
	Conn *pgx.ConnConfig

	// Any accepts any address, as for a replica: the watch does not look for the primary.
	Any bool

	// BeforeConnect changes the config of each new connection, such as for credentials. May be nil.
	BeforeConnect func(context.Context, *pgx.ConnConfig) error

	// Try runs fn, which makes a connection, and runs it again with other credentials if that may help. Defaults to
	// running it once.
	Try func(ctx context.Context, fn func(context.Context) error) error

	FailAfter time.Duration // how long the host may be silent while requests wait
	Wait      time.Duration // how long after it went down requests wait for another primary

	// Logger logs when the host goes down or comes up, and when its primary changes, in the order of events. The watch
	// calls it with no lock held. Nil logs nothing.
	Logger *slog.Logger

	// Busy reports whether requests are under way.
	Busy func() bool

	// Pooled reports whether there is a pooler before the host. One whose sessions are all busy, or that is paused, accepts connections
	// and answers none: that is load, and not a host that is down. Defaults to never.
	Pooled func() bool

	// Down, Up and Moved are called in the order of events and must not call the Watch. After Down, requests fail with
	// why. After Up, they go to the host again, on new connections. Moved must replace idle connections, because the host's
	// address or the server at that address has changed.
	Down  func(why error)
	Up    func()
	Moved func()

	// DownError makes the error of requests that are not sent because the host is down. It wraps [failure.ErrHostDown] and
	// the cause. Defaults to an error with their texts.
	DownError func(since time.Time, cause error) error
}

// Watch watches whether a host is up, and which of its addresses is the primary. It is safe for concurrent use.
type Watch struct {
	Config
	several   bool // the host has several addresses, of which one is the primary
	addresses []*address
	probing   *pgx.ConnConfig // config of the probers' connections

	passing  atomic.Bool   // requests are admitted, and probers run
	turns    atomic.Uint64 // number of times the host went down or its primary changed
	halfOpen atomic.Bool   // the breaker is half-open

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu         sync.Mutex // guards what follows, and the last report of each address; address.mu may be taken under it
	started    bool
	admitted   bool      // requests have been admitted
	closed     error     // why requests no longer wait
	up         bool      // there is a primary
	primary    *address  // nil if there is none
	latest     *address  // the last primary
	timeline   uint32    // of latest; 0 if unknown
	system     string    // system identifier of the cluster; empty if unknown
	since      time.Time // when it went down
	cause      error     // why it is down
	lastReads  uint64    // latest.callers, when it last changed since the host went down
	lastReadAt time.Time // when that was
	changes    uint64
	reported   chan struct{} // closed and replaced at each report

	records []func() // queued log records
	logging bool     // a goroutine passes them to the logger
}

var errLooking = errors.New("no primary found yet")

// New returns a watch that does nothing before the first [Watch.Admit]. The caller must close it.
func New(cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Try == nil {
		cfg.Try = func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
	}
	if cfg.Pooled == nil {
		cfg.Pooled = func() bool { return false }
	}
	if cfg.DownError == nil {
		cfg.DownError = func(_ time.Time, cause error) error { return fmt.Errorf("%w: %w", failure.ErrHostDown, cause) }
	}
	w := &Watch{Config: cfg, addresses: addressesOf(cfg.Conn), probing: cfg.Conn.Copy(), reported: make(chan struct{})}
	w.probing.Tracer = nil
	w.several = len(w.addresses) > 1 && !cfg.Any
	w.ctx, w.stop = context.WithCancel(context.Background())
	if w.several {
		w.cause = errLooking
		for _, a := range w.addresses {
			a.close(errLooking)
		}
	} else {
		w.addresses = w.addresses[:1]
		w.up, w.primary, w.latest = true, w.addresses[0], w.addresses[0]
	}
	return w
}

// Several reports whether the host has several addresses of which one is the primary.
func (w *Watch) Several() bool { return w.several }

// Passing reports whether [Watch.Admit] would admit a request without waiting.
func (w *Watch) Passing() bool { return w.passing.Load() }

// Turns returns how often the host went down or its primary changed.
func (w *Watch) Turns() uint64 { return w.turns.Load() }

// start starts the probers, at the first request.
func (w *Watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started || w.closed != nil {
		return
	}
	w.started = true
	if w.up {
		w.admitted = true
		w.passing.Store(true)
	} else {
		w.since = time.Now()
	}
	for _, a := range w.addresses {
		w.running.Go((&prober{Watch: w, at: a}).run)
	}
}

// Retire fails all requests that wait in [Watch.Admit], and later ones that would wait, with why.
func (w *Watch) Retire(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = why
	w.notify()
}

// Wake makes requests that wait in [Watch.Admit] call gone again.
func (w *Watch) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify()
}

// Cut closes all connections, including those in use, and forbids new ones.
func (w *Watch) Cut(why error) {
	for _, a := range w.addresses {
		a.close(why)
	}
}

// Close stops the probers and waits for them. Connections of the owner stay open.
func (w *Watch) Close() {
	w.stop()
	w.running.Wait()
	for _, a := range w.addresses {
		a.mu.Lock()
		a.shut() // releases the resources of the context
		a.mu.Unlock()
	}
}

// notify wakes all goroutines that wait for a report. The caller holds mu.
func (w *Watch) notify() {
	close(w.reported)
	w.reported = make(chan struct{})
}

// downError returns why requests are not admitted. The caller holds mu.
func (w *Watch) downError() error { return w.DownError(w.since, w.cause) }

// Stats are statistics of a host.
type Stats struct {
	Up        bool
	HalfOpen  bool      // it is up again, but has no connection yet
	DownSince time.Time // zero while it is up
	Primary   string    // its address as host:port; empty if unknown
	Timeline  uint32    // of the primary of a host with several addresses; 0 if unknown
	Changes   uint64    // how often another address became the primary
	Rivals    int       // addresses that take writes as well, although they are not the primary
}

// Stats returns statistics of the host.
func (w *Watch) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Stats{Up: w.up, Timeline: w.timeline, Changes: w.changes}
	if w.up {
		s.HalfOpen = w.halfOpen.Load()
	} else {
		s.DownSince = w.since
	}
	if w.primary != nil {
		s.Primary = w.primary.String()
	}
	for _, a := range w.addresses {
		if a.rival {
			s.Rivals++
		}
	}
	return s
}
