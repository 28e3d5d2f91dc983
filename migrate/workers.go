package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// The methods that fanout calls, and the flush after it.

func (r *run) open(ctx context.Context, host shards.Host) (*session, error) {
	s, err := r.sessions.take(ctx, host)
	if err != nil {
		return nil, err
	}
	// The lock session holds tern's lock; this session takes it too, so that it is held as long as any session lives. That
	// fails while a tern program waits for the lock, which is fine.
	held, err := s.value(ctx, fmt.Sprintf("%s; select pg_try_advisory_lock_shared(%d)", neutral, int64(ternLock)))
	if err != nil {
		s.conn.Close(ctx)
		return nil, err
	}
	s.ternLock = s.ternLock || held == "t"
	return s, nil
}

func (r *run) close(_ context.Context, s *session) { r.sessions.give(s) }

// recycleAfter is the number of shards after which a session is replaced, since Postgres caches the catalog entries of
// tables in the memory of a session. Tests lower it.
var recycleAfter = 1000

func alive(s *session) bool { return !s.conn.IsClosed() && s.shards < recycleAfter }

func (r *run) do(ctx context.Context, s *session, batch []shards.Number) []error {
	r.mu.Lock()
	r.touched[s.host.Name] = true
	r.mu.Unlock()
	errs := make([]error, len(batch))
	for i, n := range batch {
		errs[i] = r.withRetries(ctx, s, n)
		s.shards++
	}
	return errs
}

// flush makes every host with migrated shards flush its commits to disk, even after an interrupt. The shards of a host that
// does not confirm it change from done to failed; so do shards whose migration a host lost by a crash during the run.
func (r *run) flush(ctx context.Context, work []fanout.Work, done shards.Set, err error) (shards.Set, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	causes := make([]map[shards.Number]error, len(work))
	var wg sync.WaitGroup
	for i, w := range work {
		if r.touched[w.Host.Name] {
			wg.Go(func() { causes[i] = r.flushHost(ctx, w) })
		}
	}
	wg.Wait()
	var unsure []*shards.ShardError
	for i, w := range work {
		for _, n := range w.Shards {
			if cause := causes[i][n]; cause != nil && done.Has(n) {
				unsure = append(unsure, &shards.ShardError{
					Shard: n, Schema: r.cfg.Map.Schema(n), Host: w.Host.Name, Err: fmt.Errorf("%w: %w", ErrNotFlushed, cause),
				})
			}
		}
	}
	if len(unsure) == 0 {
		return done, r.namingNothing(err)
	}
	var partial *shards.PartialError
	if !errors.As(err, &partial) {
		partial = &shards.PartialError{}
	}
	partial.Failed = sortShards(append(partial.Failed, unsure...))
	partial.Done = without(done, numbersOf(unsure))
	return partial.Done, partial
}

// flushHost returns the shards that may not be on disk at the target, and why. While the lock session lives, the host has
// not crashed, since a crash ends all sessions. If it is gone, the host may have lost its last commits, so flushHost
// reads the versions again.
func (r *run) flushHost(ctx context.Context, w fanout.Work) map[shards.Number]error {
	if lockSession := r.lockSessions[w.Host.Name]; !lockSession.conn.IsClosed() && lockSession.flush(ctx) == nil {
		return nil
	}
	causes := map[shards.Number]error{}
	found, err := r.lookAndFlush(ctx, w)
	for _, n := range w.Shards {
		at := found[n]
		switch {
		case err != nil:
			causes[n] = err
		case at.err != nil:
			causes[n] = at.err
		case r.short(at.version):
			causes[n] = fmt.Errorf("it is at version %d", at.version)
		}
	}
	return causes
}

// lookAndFlush reads the versions of the host's shards and flushes them to disk, in one new session, so that a crash in
// between is an error.
func (r *run) lookAndFlush(ctx context.Context, w fanout.Work) (map[shards.Number]shardVersion, error) {
	s, err := r.sessions.open(ctx, w.Host)
	if err != nil {
		return nil, err
	}
	defer r.sessions.give(s)
	found, err := s.shardVersions(ctx, r.cfg.Map, w.Shards)
	if err != nil {
		return nil, err
	}
	return found, s.flush(ctx)
}

// namingNothing adds [ErrNothingRun] to the error of a run that began no shard.
func (r *run) namingNothing(err error) error {
	var partial *shards.PartialError
	if errors.As(err, &partial) && len(r.touched) == 0 {
		partial.Causes = append([]error{ErrNothingRun}, partial.Causes...)
	}
	return err
}

// interruptedOr returns the cause of ctx's end, with the tern programs that the run waited for, or the given causes if ctx
// has not ended.
func interruptedOr(ctx context.Context, causes []error) []error {
	if ctx.Err() == nil {
		return causes
	}
	interrupt := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		interrupt = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	causes = slices.DeleteFunc(causes, func(err error) bool { return !errors.Is(err, ErrTernAtWork) })
	return append([]error{interrupt}, causes...)
}
