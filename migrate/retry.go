package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// firstPause is the mean pause before the first retry of a shard; it doubles with each retry.
const firstPause = 100 * time.Millisecond

// withRetries takes one shard to the target, and retries if it did not get a lock in time: all other sessions wait behind a
// session that waits for a lock, so many short waits are better than a long one. It also retries a file that collided with
// others; see [session.Collided].
func (r *run) withRetries(ctx context.Context, s *session.Session, n shards.Number) error {
	began, from := time.Now(), r.shardVersions[n]
	r.begin(s, n)
	defer r.end(n)
	interrupted := fanout.Interrupted(ctx)
	at := from
	for attempt := 1; ; attempt++ {
		var failed *files.File
		var err error
		at, failed, err = r.shard(ctx, s, n, at)
		if err == nil {
			r.tell(ShardDone, s, n, from, at, began, nil)
			return nil
		}
		again := !s.Conn.IsClosed() && !errors.Is(err, ErrTransactionEnded) &&
			(session.WaitedInVain(err) && r.cfg.LockTimeout > 0 || session.Collided(err) && !(failed != nil && failed.DisableTx))
		if again && attempt == 1 && r.cfg.Retries > 0 && session.Collided(err) { // the other one has ended
			r.again(s, n, attempt, err, "")
			continue
		}
		if again && session.Interrupted(ctx) {
			err = fmt.Errorf("%w, and not tried again: %w", fanout.ErrInterrupted, err)
			attempt = r.cfg.Retries + 1
		}
		if attempt > r.cfg.Retries || !again {
			if session.WaitedInVain(err) && !s.Conn.IsClosed() {
				err = fmt.Errorf("%w%s", err, s.Blockers(ctx, r.cfg.Map.Schema(n)))
			}
			if failed != nil {
				r.enterFailure(ctx, s, n, at, *failed, err)
			}
			r.tell(ShardFailed, s, n, from, at, began, err)
			return err
		}
		r.again(s, n, attempt, err, s.Blockers(ctx, r.cfg.Map.Schema(n)))
		pause := firstPause << (attempt - 1)
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-interrupted:
			err = fmt.Errorf("%w, and not tried again: %w%s", fanout.ErrInterrupted, err, s.Blockers(ctx, r.cfg.Map.Schema(n)))
			if failed != nil {
				r.enterFailure(ctx, s, n, at, *failed, err)
			}
			r.tell(ShardFailed, s, n, from, at, began, err)
			return err
		}
	}
}

// again counts an attempt that failed and is followed by another one.
func (r *run) again(s *session.Session, n shards.Number, attempt int, err error, blockers string) {
	r.triedAgain.Add(1)
	r.events.send(Event{Kind: ShardRetry, Host: s.Host.Name, Shard: n, Attempt: attempt, Err: err, Blockers: blockers})
}

func (r *run) tell(kind EventKind, s *session.Session, n shards.Number, from, at shardVersion, began time.Time, err error) {
	r.events.send(Event{
		Kind: kind, Host: s.Host.Name, Shard: n, From: from.version, To: at.version, Took: time.Since(began), Err: err,
	})
}

func (r *run) do(ctx context.Context, s *session.Session, batch []shards.Number) []error {
	r.mu.Lock()
	r.touched[s.Host.Name] = true
	r.mu.Unlock()
	errs := make([]error, len(batch))
	for i, n := range batch {
		errs[i] = r.withRetries(ctx, s, n)
		s.Shards++
	}
	return errs
}
