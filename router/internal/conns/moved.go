package conns

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// movedLimit is how long a request waits for a shard that is not there: for a map that says where it is, or for its return.
const movedLimit = 3 * time.Second

// awaitMoved waits for a map in which a shard that is not on this host has another one, and reports whether to repeat the request:
// there is one, or it is time to see whether the shard is back, as it is after a move that was aborted.
func (p *Pool) awaitMoved(ctx context.Context, shard *Shard, t *Attempts) bool {
	if t.missed.IsZero() {
		t.missed = time.Now()
	}
	if p.awaitMove == nil || shard.Gone() || time.Since(t.missed) > movedLimit {
		return shard.Gone()
	}
	return p.awaitMove(ctx, shard)
}

// AwaitMoved is [Pool.awaitMoved] for a request that was given a lane and has given it back.
func (r *Request) AwaitMoved(ctx context.Context, t *Attempts) bool {
	return r.shard.AwaitMoved(ctx, t)
}

// AwaitMoved is [Pool.awaitMoved] for what was not on the host.
func (s *Shard) AwaitMoved(ctx context.Context, t *Attempts) bool {
	return s.pool.awaitMoved(ctx, s, t)
}

// Gone reports whether the shard has gone to another host.
func (r *Request) Gone() bool { return r.shard.Gone() }

// orMoved returns [failure.ErrMoved] in place of the error of a statement whose shard is not there any more: the error has
// undone all that the statement did. An entry by itself shows it, or that the role may not use the shard. Of several statements
// sent as one text some may have taken effect.
func (r *Request) orMoved(ctx context.Context, err error) error {
	if !session.MayHaveMoved(err) || ctx.Err() != nil {
		return err
	}
	scanner := sqltext.Scanner{Text: r.sql}
	if found, _ := scanner.Split(); len(found) > 1 {
		return err
	}
	if r.shard.Gone() {
		return r.shard.Failed(failure.Moved(err))
	}
	lease, leaseErr := r.shard.pool.acquireAny(ctx, r.shard)
	if leaseErr != nil {
		return err
	}
	defer lease.Release()
	checkErr := lease.lane.session.CheckEntry(ctx, &r.shard.Shard)
	switch {
	case session.EntryRefused(checkErr):
		return checkErr
	case checkErr == nil && session.OnFence(err): // the fence has come down meanwhile
		return r.shard.Failed(failure.Moved(err))
	}
	return err
}
