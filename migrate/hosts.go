package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// keep opens a session to each host that locks out tern programs until the run ends, and creates or upgrades the ledger.
// It returns a [shards.HostError] for each host where that fails.
func (r *run) keep(ctx context.Context, work []fanout.Work) []error {
	lockSessions := make([]*session.Session, len(work))
	errs := make([]error, len(work))
	var wg sync.WaitGroup
	for i, w := range work {
		wg.Go(func() {
			lockSessions[i], errs[i] = r.lockSession(ctx, w.Host)
		})
	}
	wg.Wait()
	var causes []error
	for i, w := range work {
		if errs[i] != nil {
			causes = append(causes, &shards.HostError{Host: w.Host.Name, Err: errs[i]})
			continue
		}
		r.lockSessions[w.Host.Name] = lockSessions[i]
	}
	return causes
}

// letGo returns the lock sessions to the pool, which closes them with all others.
func (r *run) letGo() {
	for _, lockSession := range r.lockSessions {
		r.sessions.Give(lockSession)
	}
}

func (r *run) lockSession(ctx context.Context, host shards.Host) (*session.Session, error) {
	s, err := r.sessions.Take(ctx, host)
	if err != nil {
		return nil, err
	}
	if err = s.LockOutTern(ctx, r.cfg.TernWait); err == nil {
		err = ledger.Keep(ctx, s, r.cfg.Map.Schemas(r.cfg.Map.NumbersOn(host.Name)))
	}
	if err != nil {
		r.sessions.Give(s)
		return nil, err
	}
	return s, nil
}

// flush makes every host with migrated shards flush its commits to disk, even after an interrupt. The shards of a host that
// does not confirm it change from done to failed; so do shards whose migration a host lost by a crash during the run.
func (r *run) flush(ctx context.Context, work []fanout.Work, done shards.Set, err error) (shards.Set, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CleanUpLimit)
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
	if lockSession := r.lockSessions[w.Host.Name]; !lockSession.Conn.IsClosed() && lockSession.Flush(ctx) == nil {
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
	s, err := r.sessions.Open(ctx, w.Host)
	if err != nil {
		return nil, err
	}
	defer r.sessions.Give(s)
	found, err := shardVersions(ctx, s, r.cfg.Map, w.Shards)
	if err != nil {
		return nil, err
	}
	return found, s.Flush(ctx)
}

// namingNothing adds [ErrNothingRun] to the error of a run that began no shard.
func (r *run) namingNothing(err error) error {
	var partial *shards.PartialError
	if errors.As(err, &partial) && len(r.touched) == 0 {
		partial.Causes = append([]error{ErrNothingRun}, partial.Causes...)
	}
	return err
}

func (r *run) open(ctx context.Context, host shards.Host) (*session.Session, error) {
	s, err := r.sessions.Take(ctx, host)
	if err != nil {
		return nil, err
	}
	if err := s.JoinTernLock(ctx); err != nil {
		s.Conn.Close(ctx)
		return nil, err
	}
	return s, nil
}

func (r *run) close(_ context.Context, s *session.Session) { r.sessions.Give(s) }
