package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// The methods of this file are what fanout calls, and what is left to do after it.

func (r *upRun) open(ctx context.Context, host shards.Host) (*session, error) {
	s, err := r.sessions.take(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := s.lockOutTern(ctx, r.cfg.TernWait); err != nil {
		r.sessions.give(s)
		return nil, err
	}
	return s, nil
}

func (r *upRun) close(_ context.Context, s *session) { r.sessions.give(s) }

func alive(s *session) bool { return !s.conn.IsClosed() }

func (r *upRun) do(ctx context.Context, s *session, batch []shards.Number) []error {
	r.mu.Lock()
	r.touched[s.host.Name] = true
	r.mu.Unlock()
	errs := make([]error, len(batch))
	for i, n := range batch {
		errs[i] = r.upShard(ctx, s, n)
	}
	return errs
}

// flush has every host that was worked on put on disk what was committed there, also after an
// interrupt. The shards of a host that does not confirm it go from done to failed.
func (r *upRun) flush(ctx context.Context, work []fanout.Work, done shards.Set, err error) (shards.Set, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	causes := make([]error, len(work))
	var wg sync.WaitGroup
	for i, w := range work {
		if r.touched[w.Host.Name] {
			wg.Go(func() { causes[i] = r.flushHost(ctx, w.Host) })
		}
	}
	wg.Wait()
	var unsure []*shards.ShardError
	for i, w := range work {
		for _, n := range w.Shards {
			if cause := causes[i]; cause != nil && done.Has(n) {
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

func (r *upRun) flushHost(ctx context.Context, host shards.Host) error {
	s, err := r.sessions.take(ctx, host)
	if err != nil {
		return err
	}
	defer r.sessions.give(s)
	return s.flush(ctx)
}

// namingNothing adds to the error of a run that nothing was run, if so.
func (r *upRun) namingNothing(err error) error {
	var partial *shards.PartialError
	if errors.As(err, &partial) && len(r.touched) == 0 {
		partial.Causes = append([]error{ErrNothingRun}, partial.Causes...)
	}
	return err
}

// interruptedOr returns the end of ctx as the one cause if it ended, else the given causes.
func interruptedOr(ctx context.Context, causes []error) []error {
	if ctx.Err() == nil {
		return causes
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return []error{fmt.Errorf("%w: %w", ctx.Err(), cause)}
	}
	return []error{ctx.Err()}
}
