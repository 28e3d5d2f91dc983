package many

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// job is work over many shards: the result of each so far, and what ends it early.
//
// It is not [fanout.Run], which is for changes: that starts nothing unless every host answers, and lets batches continue
// for a while after an interrupt. A caller that reads a page of rows wants what is available.
type job struct {
	router *router.Router
	kind   Kind
	opts   Options
	caller context.Context
	ctx    context.Context // ends with the caller's, and with the first failure if the options say so
	stop   context.CancelFunc

	mu       sync.Mutex // guards what follows
	done     []shards.Number
	failed   []*shards.ShardError
	causes   []error
	panicked *panicked // the first panic
}

func newJob(ctx context.Context, r *router.Router, kind Kind, opts Options) *job {
	j := &job{router: r, kind: kind, opts: opts, caller: ctx}
	j.ctx, j.stop = context.WithCancel(ctx)
	return j
}

// hostJob is the part of a job that is on one host.
type hostJob struct {
	*job
	host   string
	ctx    context.Context // ends with the job's, and when the host is given up
	giveUp context.CancelFunc
}

// onHosts calls fn once a host, all at once, with the indexes of its shards in rising order, and waits for all.
func (j *job) onHosts(all []router.Shard, fn func(l *hostJob, on []int)) {
	began := time.Now()
	byHost := map[string][]int{}
	for i, s := range all {
		name := s.Host().Name
		byHost[name] = append(byHost[name], i)
	}
	var wait sync.WaitGroup
	for name, on := range byHost {
		wait.Go(func() {
			ctx, giveUp := context.WithCancel(j.ctx)
			defer giveUp()
			fn(&hostJob{job: j, host: name, ctx: ctx, giveUp: giveUp}, on)
		})
	}
	wait.Wait()
	j.trace(len(all), began)
}

// limit returns the context of one shard.
func (l *hostJob) limit() (context.Context, context.CancelFunc) {
	if l.opts.Timeout > 0 {
		return context.WithTimeout(l.ctx, l.opts.Timeout)
	}
	return context.WithCancel(l.ctx)
}

// ended records the result of a shard. ctx is the shard's, from limit, and is not canceled yet. ended gives up a host that
// is unreachable: the next shard would only wait for the same failure. It does not give up a host that answers, even
// with a refusal.
func (l *hostJob) ended(ctx context.Context, s router.Shard, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.done = append(l.done, s.Number())
		return
	}
	if host := unreachable(err); ctx.Err() == nil && host != nil && host.Host == l.host {
		l.causes = append(l.causes, host)
		l.giveUp()
	}
	l.fail(s, err)
}

// unreachable returns the error of a host that cannot be reached, if err is one. A host whose pool has no free
// connection, or whose server accepts no more connections, is not unreachable: that passes.
func unreachable(err error) (host *shards.HostError) {
	var connecting *connect.Error
	var refusal *pgconn.PgError
	if !errors.As(err, &host) {
		return nil
	}
	if errors.Is(host, router.ErrHostDown) || errors.As(host, &connecting) && !errors.As(host, &refusal) {
		return host
	}
	return nil
}

// fail records that a shard failed, even after it seemed to be done. The caller holds mu.
func (j *job) fail(s router.Shard, err error) {
	failure := failureOf(s, err)
	j.failed = append(j.failed, failure)
	if j.opts.FirstError && j.ctx.Err() == nil {
		if len(j.causes) == 0 { // a host that was given up is a cause already
			j.causes = append(j.causes, failure)
		}
		j.stop()
	}
}

// failureOf returns err as an error about the shard.
func failureOf(s router.Shard, err error) *shards.ShardError {
	var already *shards.ShardError
	if errors.As(err, &already) && already.Shard == s.Number() && error(already) == err { //nolint:errorlint // what is wrapped around it must not be lost
		return already
	}
	return &shards.ShardError{Shard: s.Number(), Schema: s.Schema(), Host: s.Host().Name, Err: err}
}

// result returns nil if all shards are done, otherwise a [shards.PartialError]. It panics if what the caller gave has panicked. Call it when
// all work has ended.
func (j *job) result(all []router.Shard) error {
	if j.panicked != nil {
		panic(j.panicked)
	}
	slices.SortFunc(j.failed, func(a, b *shards.ShardError) int { return int(a.Shard) - int(b.Shard) })
	var failed, left []shards.Number
	for _, f := range j.failed {
		failed = append(failed, f.Shard)
	}
	notDone := shards.SetOf(failed...)
	done := shards.SetOf(slices.DeleteFunc(j.done, notDone.Has)...)
	for _, s := range all {
		if n := s.Number(); !notDone.Has(n) && !done.Has(n) {
			left = append(left, n)
		}
	}
	if len(failed) == 0 && len(left) == 0 {
		return nil
	}
	if j.caller.Err() != nil {
		j.causes = append(j.causes, interruption(j.caller))
	}
	return &shards.PartialError{Done: done, Failed: j.failed, NotAttempted: shards.SetOf(left...), Causes: j.causes}
}

// interruption returns why a context has ended.
func interruption(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
