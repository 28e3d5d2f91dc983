package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// Work is the work on one host.
type Work struct {
	Host   shards.Host
	Shards []shards.Number
}

// Plan returns the given shards grouped by their hosts, in the order of the map's hosts, without
// the hosts that have none. It panics for a shard that the map does not have.
func Plan(m *shards.Map, set shards.Set) []Work {
	byHost := make([][]shards.Number, len(m.Hosts()))
	for n := range set.All() {
		i := m.HostIndex(n)
		byHost[i] = append(byHost[i], n)
	}
	var plan []Work
	for i, numbers := range byHost {
		if len(numbers) > 0 {
			plan = append(plan, Work{m.Hosts()[i], numbers})
		}
	}
	return plan
}

// Config configures [Run].
type Config[S any] struct {
	Map *shards.Map

	// Open starts a session to a host. Its context ends with the one of Run. A session is used by one
	// worker at a time. If its session is not Alive after a batch, the worker opens another one
	// for the next batch; if that fails, the rest of that host's shards are not attempted.
	Open func(ctx context.Context, host shards.Host) (S, error)

	// Close ends a session. Its context outlives an interrupt, and lasts 5 s. Defaults to nothing.
	Close func(ctx context.Context, session S)

	// Alive reports whether a session can be used for another batch. Defaults to always.
	Alive func(session S) bool

	// Do works on a batch of shards of one host, and returns one error for each shard, in order;
	// nil for one that is done, and [ErrInterrupted] for one that it gave up. Its context ends Grace after that of Run.
	Do func(ctx context.Context, session S, batch []shards.Number) []error

	// Reachable makes Run work on the hosts that it can reach, where otherwise it works on none unless it can reach all.
	Reachable bool

	PerHost  int           // workers for each host. Defaults to 2
	Batch    int           // shards in a batch. Defaults to 1
	Grace    time.Duration // how long batches under way may go on after an interrupt. Defaults to 30 s
	Progress Progress      // Defaults to none
}

// Progress is called as a run goes on. It is never called by two goroutines at once.
type Progress interface {
	Begin(host string, total int)                                      // once a host that has work, before it starts
	Finished(host string, n shards.Number, err error, d time.Duration) // d is the batch's time, shared by its shards
	End()                                                              // once, also after an error
}

// closeTimeout limits the closing of a session.
const closeTimeout = 5 * time.Second

// Run does the work of the plan, which has each host and each shard once, and returns when all
// sessions are closed. It returns the shards that are done, and a [shards.PartialError] if those are
// not all; no shard was touched if its Done and Failed are both empty. Its causes are a
// [shards.HostError] for each host that could not be reached, and, when ctx ended, an error that
// wraps both ctx.Err and [context.Cause].
func Run[S any](ctx context.Context, cfg Config[S], plan []Work) (shards.Set, error) {
	if cfg.PerHost <= 0 {
		cfg.PerHost = 2
	}
	if cfg.Batch <= 0 {
		cfg.Batch = 1
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 30 * time.Second
	}
	r := &run[S]{cfg: cfg, interrupted: func() bool { return ctx.Err() != nil }}
	working, stop := withGrace(ctx, cfg.Grace)
	defer stop()

	if cfg.Progress != nil {
		defer cfg.Progress.End()
	}

	plan = slices.DeleteFunc(slices.Clone(plan), func(w Work) bool { return len(w.Shards) == 0 })
	sessions, ok := r.openFirst(ctx, plan)
	switch {
	case ok:
		r.work(ctx, working, plan, sessions)
	case cfg.Reachable:
		var reached []Work
		for i, w := range plan {
			if sessions[i] != nil {
				reached = append(reached, w)
			}
		}
		r.work(ctx, working, reached, slices.DeleteFunc(sessions, func(s *S) bool { return s == nil }))
	default:
		for _, session := range sessions {
			r.close(working, session)
		}
	}
	if ctx.Err() != nil {
		r.causes = append(r.causes, interruption(ctx))
	}
	return r.result(plan)
}

// interruption returns why ctx ended.
func interruption(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return context.Cause(ctx)
}

// run is the state of one [Run].
type run[S any] struct {
	cfg         Config[S]
	interrupted func() bool // whether Run's context has ended; contexts made from it end a little later

	mu     sync.Mutex // guards what follows, and calls of Progress
	done   []shards.Number
	failed []*shards.ShardError
	gaveUp []shards.Number // interrupted
	causes []error
}

// withGrace returns a context that outlives ctx by grace, unless it is aborted.
func withGrace(ctx context.Context, grace time.Duration) (context.Context, func()) {
	working, cancel := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), interruptKey{}, ctx))
	keep := func() bool { return true }
	if abort, ok := ctx.Value(abortKey{}).(context.Context); ok {
		keep = context.AfterFunc(abort, cancel)
	}
	var timer *time.Timer
	var mu sync.Mutex // guards timer
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer = time.AfterFunc(grace, cancel)
	})
	return working, func() {
		stop()
		keep()
		mu.Lock()
		defer mu.Unlock()
		if timer != nil {
			timer.Stop()
		}
		cancel()
	}
}

// openFirst opens the first session to each host of the plan, and reports whether all are open. A
// session that failed to open is nil.
func (r *run[S]) openFirst(ctx context.Context, plan []Work) ([]*S, bool) {
	sessions := make([]*S, len(plan))
	errs := make([]error, len(plan))
	var wg sync.WaitGroup
	for i, w := range plan {
		wg.Go(func() {
			session, err := r.cfg.Open(ctx, w.Host)
			if err != nil {
				errs[i] = err
				return
			}
			sessions[i] = &session
		})
	}
	wg.Wait()
	ok := true
	for i, err := range errs {
		if err == nil {
			continue
		}
		ok = false
		if ctx.Err() == nil || !errors.Is(err, ctx.Err()) { // the interrupt is named once, by Run
			r.causes = append(r.causes, &shards.HostError{Host: plan[i].Host.Name, Err: err})
		}
	}
	return sessions, ok
}

// work runs all workers of all hosts until the plan is done or ctx ends.
func (r *run[S]) work(ctx, working context.Context, plan []Work, sessions []*S) {
	if r.cfg.Progress != nil {
		for _, w := range plan {
			r.cfg.Progress.Begin(w.Host.Name, len(w.Shards))
		}
	}
	var wg sync.WaitGroup
	for i, w := range plan {
		hostCtx, giveUp := context.WithCancel(ctx)
		defer giveUp()
		count := (len(w.Shards) + r.cfg.Batch - 1) / r.cfg.Batch
		batches := make(chan []shards.Number, count) // with room for all, so that no worker waits for a sender
		for batch := range slices.Chunk(w.Shards, r.cfg.Batch) {
			batches <- batch
		}
		close(batches)

		first := &worker[S]{run: r, host: w.Host, giveUp: giveUp, session: sessions[i]}
		wg.Go(func() { first.work(hostCtx, working, batches) })
		for range min(r.cfg.PerHost, count) - 1 {
			other := &worker[S]{run: r, host: w.Host, giveUp: giveUp}
			wg.Go(func() { other.work(hostCtx, working, batches) })
		}
	}
	wg.Wait()
}

func (r *run[S]) finished(host shards.Host, batch []shards.Number, errs []error, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range batch {
		switch {
		case errs[i] == nil:
			r.done = append(r.done, n)
		case errors.Is(errs[i], ErrInterrupted):
			r.gaveUp = append(r.gaveUp, n)
			continue
		default:
			r.failed = append(r.failed, &shards.ShardError{Shard: n, Schema: r.cfg.Map.Schema(n), Host: host.Name, Err: errs[i]})
		}
		if r.cfg.Progress != nil {
			r.cfg.Progress.Finished(host.Name, n, errs[i], d)
		}
	}
}

// lost records that a host with work left cannot be reached, and ends its work. It does nothing if that
// work has ended already.
func (r *run[S]) lost(hostCtx context.Context, host shards.Host, err error, giveUp func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if hostCtx.Err() == nil && !r.interrupted() {
		r.causes = append(r.causes, &shards.HostError{Host: host.Name, Err: err})
	}
	giveUp()
}

func (r *run[S]) close(ctx context.Context, session *S) {
	if session == nil || r.cfg.Close == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	r.cfg.Close(ctx, *session)
}

// result returns the results of [Run].
func (r *run[S]) result(plan []Work) (shards.Set, error) {
	done := shards.SetOf(r.done...)
	slices.SortFunc(r.failed, func(a, b *shards.ShardError) int { return int(a.Shard) - int(b.Shard) })
	failed := make([]shards.Number, len(r.failed))
	for i, f := range r.failed {
		failed[i] = f.Shard
	}
	touched := shards.SetOf(append(failed, r.done...)...)
	var left []shards.Number
	for _, w := range plan {
		for _, n := range w.Shards {
			if !touched.Has(n) {
				left = append(left, n)
			}
		}
	}
	if len(r.failed) == 0 && len(left) == 0 {
		return done, nil
	}
	return done, &shards.PartialError{Done: done, Failed: r.failed, NotAttempted: shards.SetOf(left...), Interrupted: shards.SetOf(r.gaveUp...), Causes: r.causes}
}
