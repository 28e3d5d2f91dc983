package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// The first pause between two attempts to get a shard's lock, and the longest; each is twice as long as the one before.
const (
	shardPollFirst = 2 * time.Millisecond
	shardPollLast  = 50 * time.Millisecond
)

// endWhenIdle has the server end a session that works on a shard and is not heard of any more, as when the network
// to its program broke down, or the program's machine. One that is heard of is never idle for long.
const endWhenIdle = "set idle_session_timeout = '1min'"

// heartbeat is the time between two signs of life of a session that holds a lock for another one, with the same limit.
const heartbeat = 15 * time.Second

// ErrLockLost says that a shard's lock was lost while it was worked on.
var ErrLockLost = errors.New("the shard's lock was lost, since its session ended")

// shardLock is the lock of a shard, held beside the session that works on it.
type shardLock struct {
	session *session
	stop    context.CancelFunc
	ended   chan struct{} // closed when nobody keeps it alive any more
}

// lockShard takes a shard's lock for the session, until [shardLock.release]. Nothing that only the owner can lock outlives a
// transaction, and statements that cannot be in one are run meanwhile: so the transaction is that of another session. The
// context that it returns ends when that is lost.
//
// It asks again and again, for the reason given at [session.lockOutTern]: whoever holds the lock may be at a CREATE
// INDEX CONCURRENTLY, which would wait for the snapshot of a statement that waits for the lock.
func (r *run) lockShard(ctx context.Context, working *session, n shards.Number) (context.Context, *shardLock, error) {
	s, err := r.sessions.take(ctx, working.host)
	if err != nil {
		return ctx, nil, err
	}
	_, err = s.values(ctx, neutral+"; begin isolation level read committed; set local idle_in_transaction_session_timeout = '1min'")
	if err == nil {
		err = s.poll(ctx, sql.TryRow(int(n)), n)
	}
	if err == nil {
		err = working.poll(ctx, endWhenIdle+"; "+sql.TryAdvisory(int(n), r.cfg.Map.Schema(n)), n)
	}
	if err != nil {
		s.recover(ctx)
		r.sessions.give(s)
		return ctx, nil, err
	}
	limited, lost := context.WithCancelCause(ctx)
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &shardLock{session: s, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for {
			select {
			case <-alive.Done():
				return
			case <-time.After(heartbeat):
			}
			beat, cancel := context.WithTimeout(alive, cleanUpLimit)
			_, err := s.value(beat, "select 1")
			cancel()
			if err != nil && alive.Err() == nil {
				lost(fmt.Errorf("%w: %w", ErrLockLost, err))
				return
			}
		}
	}()
	return limited, l, nil
}

// release lets go of the lock, also when ctx has ended.
func (l *shardLock) release(ctx context.Context, r *run) {
	l.stop()
	<-l.ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	l.session.recover(ctx)
	r.sessions.give(l.session)
}

// awaitShard returns when a shard's lock was free for a moment.
func (s *session) awaitShard(ctx context.Context, n shards.Number, schema string) error {
	return s.poll(ctx, sql.TryShard(int(n), schema), n)
}

// poll runs a query until it says true. It returns [ErrMoving] when a mover has the lock.
func (s *session) poll(ctx context.Context, query string, n shards.Number) error {
	for pause := shardPollFirst; ; pause = min(2*pause, shardPollLast) {
		got, err := s.value(ctx, query)
		if err != nil || got == "t" {
			return err
		}
		if pause == shardPollLast {
			if moving, err := s.moving(ctx); err != nil || moving.Has(n) {
				return cmp.Or(err, ErrMoving)
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-fanout.Interrupted(ctx):
			return fmt.Errorf("interrupted while another run was at work in the shard%s", s.shardHolder(ctx, n))
		}
	}
}

// shardHolder says who holds a shard's lock, as far as it can be told.
func (s *session) shardHolder(ctx context.Context, n shards.Number) string {
	holder, err := s.value(ctx, fmt.Sprintf(`
		select coalesce(string_agg(format(': process %%s (%%s, %%s): %%s', a.pid, coalesce(nullif(a.application_name, ''), 'without a name'),
			a.state, left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)), '' order by a.pid), '')
		from pg_catalog.pg_stat_activity a where a.pid in (
			select l.pid
			from pg_catalog.pg_locks l
			join pg_catalog.pg_database d on d.oid = l.database and d.datname = current_database()
			where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid::bigint = %d and l.objid::bigint = %d
			union
			select l.pid
			from kiloshard.locks k
			join pg_catalog.pg_locks l on l.locktype = 'transactionid' and l.granted and l.transactionid = k.xmax
			where k.lock = %d)`, sql.ShardLock, n, n))
	if err != nil {
		return ""
	}
	return holder
}
