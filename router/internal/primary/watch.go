package primary

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

const (
	// standbyInterval is how often the addresses of a host that works are probed.
	standbyInterval = time.Second
	// silentInterval is how often an address is probed that did not answer, and that no request needs.
	silentInterval = 5 * time.Second
	// downInterval is how long after a probe of a host that is down the next one begins.
	downInterval = 100 * time.Millisecond
	// downStep is how long a host that is down has for an answer before it is asked on another connection as well.
	downStep = 200 * time.Millisecond
	// goneFor is for how long requests to a host with one address believe that nobody listens there: however many come,
	// it is probed no more often than that.
	goneFor = downInterval / 2
	// minInterval is the shortest time between two probes.
	minInterval = 5 * time.Millisecond
	// questions is how often a host that works is asked before it counts as silent.
	questions = 3
	// closeLimit is how long the end of a connection may take.
	closeLimit = 5 * time.Second
)

// Config says which host to watch, and how its owner hears about it.
type Config struct {
	Host string // for the log

	// Conn is how to connect, to all addresses of the host. Its tracer is not used.
	Conn *pgx.ConnConfig

	// Any has any of the addresses stand for the host, as for a replica: none of them is asked whether it is the primary.
	Any bool

	// BeforeConnect changes the config of each connection that is about to be made, such as for credentials. May be nil.
	BeforeConnect func(context.Context, *pgx.ConnConfig) error

	// Try runs fn, which makes a connection, again with other credentials where that may help. Defaults to running it once.
	Try func(ctx context.Context, fn func(context.Context) error) error

	FailAfter time.Duration // how long the host may be silent while requests wait
	Wait      time.Duration // how long after it was found down requests wait for another primary

	// Logger hears that the host is down or up, and that its primary has changed, in this order and while no lock is
	// held. Nil is silent.
	Logger *slog.Logger

	// Busy reports whether requests are under way.
	Busy func() bool

	// Down, Up and Moved are called in the order of events and must not call the Watch. Down has requests fail with why
	// from now on. Up has them go to the host again, on new connections. Moved has idle connections replaced, because the
	// host's address, or what is behind it, has changed.
	Down  func(why error)
	Up    func()
	Moved func()
}

// Watch knows whether a host is up, and which of its addresses is the primary. It is safe for concurrent use.
type Watch struct {
	Config
	several   bool // addresses of which one is the primary
	addresses []*address
	probing   *pgx.ConnConfig // of the probers' connections

	passing atomic.Bool   // requests are let through, and probers run
	turns   atomic.Uint64 // how often requests were stopped, or sent to another server
	half    atomic.Bool   // the breaker is half-open

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows, and the last report of each address; address.mu may be taken under it
	started  bool
	risen    bool     // requests have been let through
	closed   error    // why nobody waits any more
	up       bool     // there is a primary
	primary  *address // nil if there is none
	latest   *address // the primary that was the last one
	timeline uint32   // of the latest; 0 if unknown
	system   string   // its identifier; empty if unknown
	since    time.Time
	cause    error     // why it is not up
	left     uint64    // what callers have received from the latest since it fell
	leftAt   time.Time // when that was
	changes  uint64
	reported chan struct{} // closed and replaced at each report

	records []func() // for the log
	logging bool     // somebody passes them on
}

var errLooking = errors.New("no primary was found yet")

// New returns a watch that does nothing before the first [Watch.Admit]. It must be closed.
func New(cfg Config) *Watch {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Try == nil {
		cfg.Try = func(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }
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

// Passing reports whether requests are let through now, and [Watch.Admit] would not wait.
func (w *Watch) Passing() bool { return w.passing.Load() }

// Turns counts how often requests were stopped, or sent to another server.
func (w *Watch) Turns() uint64 { return w.turns.Load() }

// start has the probers run, from the first request on.
func (w *Watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started || w.closed != nil {
		return
	}
	w.started = true
	if w.up {
		w.risen = true
		w.passing.Store(true)
	} else {
		w.since = time.Now()
	}
	for _, a := range w.addresses {
		w.running.Go((&prober{Watch: w, at: a}).run)
	}
}

// Retire ends all waiting in [Watch.Admit], with an error.
func (w *Watch) Retire(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = why
	w.notify()
}

// Wake has everyone that waits in [Watch.Admit] ask whether its request goes elsewhere.
func (w *Watch) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify()
}

// Cut closes all connections, those in use too, and has none made.
func (w *Watch) Cut(why error) {
	for _, a := range w.addresses {
		a.close(why)
	}
}

// Close ends the probers, and waits for them. Connections of the owner go on.
func (w *Watch) Close() {
	w.stop()
	w.running.Wait()
	for _, a := range w.addresses {
		a.mu.Lock()
		a.shut() // its resources
		a.mu.Unlock()
	}
}

// notify wakes everyone that waits for a report. The caller holds mu.
func (w *Watch) notify() {
	close(w.reported)
	w.reported = make(chan struct{})
}

// downError returns why requests are not let through. The caller holds mu.
func (w *Watch) downError() error { return &failure.DownError{Since: w.since, Err: w.cause} }

// Stats are figures on a host.
type Stats struct {
	Up        bool
	HalfOpen  bool      // it is up again, and no connection has been made since
	DownSince time.Time // zero while it is up
	Primary   string    // address that requests go to, as host:port; empty if none is known
	Timeline  uint32    // of the primary of a host with several addresses; 0 if unknown
	Changes   uint64    // so far: how many times another address became the primary
}

// Stats returns figures on the host.
func (w *Watch) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Stats{Up: w.up, Timeline: w.timeline, Changes: w.changes}
	if w.up {
		s.HalfOpen = w.half.Load()
	} else {
		s.DownSince = w.since
	}
	if w.primary != nil {
		s.Primary = w.primary.String()
	}
	return s
}
