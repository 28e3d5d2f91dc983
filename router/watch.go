package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// standbyPace is how often the addresses of a host that works are asked what they are.
	standbyPace = time.Second
	// silentPace is how often one of them is asked that did not answer, and that calls do not need.
	silentPace = 5 * time.Second
	// downPace is how long after a probe of a host that is down the next one begins.
	downPace = 100 * time.Millisecond
	// downStep is how long a host that is down has for an answer before it is asked on another connection as well.
	downStep = 200 * time.Millisecond
	// goneFor is for how long calls to a host with one address take it for gone that was: however many come, and fail at
	// once, it is asked no more often than that.
	goneFor = downPace / 2
	// leastPace is how long there is at least between two probes.
	leastPace = 5 * time.Millisecond
	// questions is how often a host that works is asked before it is taken for silent.
	questions = 3
)

// watch knows whether a host answers, and which of its addresses is the primary.
//
// A host with one address is asked only while calls wait for it and nothing comes. Of one with several addresses each is
// asked once a second, and more often while none is known to be the primary. The prober of an address has a connection of
// its own.
type watch struct {
	host      *host
	several   bool // addresses
	addresses []*address
	failAfter time.Duration
	patience  time.Duration
	log       *slog.Logger
	config    *pgx.ConnConfig // of the probers' connections
	before    func(context.Context, *pgx.ConnConfig) error

	passing atomic.Bool   // calls are let through, and probers run
	turns   atomic.Uint64 // how often calls were stopped, or sent to another address
	half    atomic.Bool   // the breaker is half-open

	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows, and what addresses say; lines.mu and address.mu may be taken under it
	started  bool
	risen    bool     // calls have been let through
	closed   error    // why nobody waits any more
	up       bool     // there is a primary
	primary  *address // nil if there is none
	latest   *address // the primary that was the last one
	timeline uint32   // of the latest; 0 if unknown
	system   string   // its identifier; empty if unknown
	since    time.Time
	cause    error     // why it is not up
	left     uint64    // what callers have heard of the latest since it fell
	leftAt   time.Time // when that was
	changes  uint64
	heard    chan struct{} // closed and made anew at each report
}

var errLooking = errors.New("no primary was found yet")

// newWatch has the connections of a pool go where the primary is.
func newWatch(h *host, config *pgxpool.Config, failover Failover, log *slog.Logger) *watch {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &watch{
		host: h, addresses: addressesOf(config.ConnConfig), failAfter: failover.FailAfter, patience: failover.Wait, log: log,
		config: config.ConnConfig.Copy(), heard: make(chan struct{}),
	}
	if before := config.BeforeConnect; before != nil {
		w.before = func(ctx context.Context, c *pgx.ConnConfig) error {
			if err := before(ctx, c); err != nil {
				return notAskedError{err}
			}
			return nil
		}
	}
	w.several = len(w.addresses) > 1 && h.replica == nil
	if !w.several {
		w.addresses = w.addresses[:1] // of a replica any will do, and stands for all
	}
	w.config.Tracer = nil
	w.ctx, w.stop = context.WithCancel(context.Background())
	if w.several {
		w.cause = errLooking
		for _, a := range w.addresses {
			a.close(errLooking)
		}
	} else {
		w.up, w.primary, w.latest = true, w.addresses[0], w.addresses[0]
	}
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		if w.before != nil {
			if err := w.before(ctx, c); err != nil {
				return err
			}
		}
		return w.direct(ctx, c)
	}
	return w
}

// direct has a new connection go to the primary.
func (w *watch) direct(ctx context.Context, c *pgx.ConnConfig) error {
	w.mu.Lock()
	risen := w.risen
	w.mu.Unlock()
	if !risen { // what a pool does by itself comes first
		if err := w.admit(ctx, nil); err != nil {
			return err
		}
	}
	w.mu.Lock()
	a, up, closed, err := w.primary, w.up, w.closed, w.downError()
	w.mu.Unlock()
	switch {
	case closed != nil && !up: // as in await
		return closed
	case !up: // calls wait where they can go elsewhere if their shard does
		return err
	}
	c.DialFunc = a.dial(c.DialFunc)
	if !w.several {
		return nil
	}
	a.only(c)
	asked := c.ValidateConnect
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if asked != nil {
			if err := asked(ctx, conn); err != nil {
				return err
			}
		}
		return w.check(ctx, conn)
	}
	return nil
}

// check refuses a new connection to what is not the primary any more.
func (w *watch) check(ctx context.Context, conn *pgconn.PgConn) error {
	r, err := askRole(ctx, conn)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unfit(r)
}

// admit returns when calls may go to the host. Its error is a [DownError], unless ctx ends first, the host is closed, or
// the home of the call, if there is one, has gone to another host.
func (w *watch) admit(ctx context.Context, home *home) error {
	if w.passing.Load() {
		return nil
	}
	return w.await(ctx, home)
}

func (w *watch) await(ctx context.Context, home *home) error {
	w.start()
	came := time.Now()
	var timer *time.Timer
	for {
		w.mu.Lock()
		up, closed, err, heard := w.up, w.closed, w.downError(), w.heard
		left := time.Until(w.since.Add(w.patience))
		hopeless := w.several && w.hopeless()
		if a := w.latest; !w.several && !up {
			// That nobody listens is said at once, so that it can be asked anew.
			left = time.Until(came.Add(downStep))
			if hopeless = a.last.news != newsGone || a.last.asked.After(came.Add(-goneFor)); !hopeless {
				a.wake()
			}
		}
		w.mu.Unlock()
		switch {
		case closed != nil:
			return closed
		case home != nil && home.next.Load() != nil:
			return errMoved
		case up:
			return nil
		case left <= 0 || hopeless:
			return err
		}
		if timer == nil {
			timer = time.NewTimer(left)
			defer timer.Stop()
		} else {
			timer.Reset(left)
		}
		select {
		case <-heard:
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// confirm waits until the address of the calls has been probed anew, or is no longer that.
func (w *watch) confirm(ctx context.Context) {
	began := time.Now()
	for {
		w.mu.Lock()
		a, closed, heard := w.primary, w.closed, w.heard
		done := a == nil || a.last.asked.After(began) || closed != nil
		if !done {
			a.wake()
		}
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-heard:
		case <-ctx.Done():
			return
		}
	}
}

// wake has the address probed at once.
func (a *address) wake() {
	select {
	case a.kick <- struct{}{}:
	default:
	}
}

// start has the probers run, from the first call on.
func (w *watch) start() {
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
		w.running.Go((&prober{watch: w, at: a}).run)
	}
}

// retire ends all waiting.
func (w *watch) retire(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = why
	w.tell()
}

// moved has those look up who wait: shards have gone to other hosts.
func (w *watch) moved() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tell()
}

// end ends the probers.
func (w *watch) end() {
	w.stop()
	w.running.Wait()
	for _, a := range w.addresses {
		a.mu.Lock()
		a.shut() // its resources
		a.mu.Unlock()
	}
}

// tell wakes those who wait for a report. The caller holds mu.
func (w *watch) tell() {
	close(w.heard)
	w.heard = make(chan struct{})
}

// downError returns why calls are not let through. The caller holds mu.
func (w *watch) downError() error { return &DownError{Since: w.since, Err: w.cause} }

// run probes an address whenever there is a reason to.
func (p *prober) run() {
	defer p.rest()
	first := time.Duration(0)
	if !p.several {
		first = p.pace()
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	var heard uint64
	var probed time.Time
	for {
		kicked := false
		select {
		case <-p.ctx.Done():
			return
		case <-p.at.kick:
			kicked = true
		case <-timer.C:
		}
		p.mu.Lock()
		up, primary, last := p.up, p.primary == p.at, p.at.last.news
		p.mu.Unlock()
		was := heard
		heard = p.at.heard()
		waiting := primary && heard == was && p.host.lines.busy()
		step, steps, every := p.failAfter/questions, questions, standbyPace
		switch {
		case !up:
			step = min(step, downStep)
			steps = int((p.failAfter + step - 1) / step)
		case !primary: // nobody waits for it
			step, steps = p.failAfter, 1
			if last == newsSilent {
				every = silentPace
			}
		}
		if kicked || !up || waiting || p.several && time.Since(probed) >= every {
			if wait := time.Until(probed.Add(leastPace)); wait > 0 && !pause(p.ctx, wait) {
				return
			}
			r := p.probe(p.ctx, step, steps)
			if p.ctx.Err() != nil {
				return
			}
			probed = time.Now()
			p.hear(p.at, r)
			heard = p.at.heard()
		} else if !p.several {
			p.rest()
		}
		timer.Reset(p.pace())
	}
}

// pace returns how long it is until there may be a reason to probe.
func (w *watch) pace() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.up {
		return downPace
	}
	pace := w.failAfter / (questions + 1)
	if w.several {
		pace = min(pace, standbyPace)
	}
	return pace
}

// pause waits, and returns false if ctx ends first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
