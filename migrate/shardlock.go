package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// The first and the longest pause between two attempts to get a shard's lock; pauses double.
const (
	shardPollFirst = 2 * time.Millisecond
	shardPollLast  = 50 * time.Millisecond
)

// endWhenIdle makes the server end a session whose program is gone, such as after a failure of the network or of the
// program's machine. The session of a live program is never idle for long.
const endWhenIdle = "set idle_session_timeout = '1min'"

// A lock held for another session is taken again in a new transaction after lockRenewal, since others wait for the old one:
// a VACUUM, or a CREATE INDEX CONCURRENTLY that found a snapshot in it. It is lost if it cannot be taken for lockLost.
const (
	lockRenewal = 3 * time.Second
	lockLost    = 30 * time.Second
)

// ErrLockLost says that a shard's lock was lost while a session worked on the shard.
var ErrLockLost = errors.New("the shard's lock was lost")

// shardLock is the lock of a shard, held by another session than the one that works on the shard.
type shardLock struct {
	session *session
	turn    sql.ShardTurn
	stop    context.CancelFunc
	ended   chan struct{} // closed when renew has returned
}

// lockShard takes a shard's lock until [shardLock.release]. A table lock, which only the owner can take, lasts for a
// transaction, and the statements that follow cannot run in one: so another session holds it. The working session takes
// the advisory lock, which lasts until its statement ends even if the program is gone. The returned context ends when the
// lock is lost.
func (r *run) lockShard(ctx context.Context, working *session, n shards.Number) (context.Context, *shardLock, error) {
	s, err := r.sessions.take(ctx, working.host)
	if err != nil {
		return ctx, nil, err
	}
	l := &shardLock{session: s, turn: r.turn(n), ended: make(chan struct{})}
	err = r.poll(ctx, working, n, func() (bool, error) {
		if got, err := l.take(ctx); !got || err != nil {
			return false, err
		}
		got, err := working.value(ctx, endWhenIdle+"; "+l.turn.Mark())
		if err == nil && got != "true" {
			s.recover(ctx)
		}
		return got == "true", err
	})
	if err != nil {
		s.recover(ctx)
		r.sessions.give(s)
		return ctx, nil, err
	}
	limited, lost := context.WithCancelCause(ctx)
	alive, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = func() { stop(); lost(nil) }
	go l.renew(alive, lost)
	return limited, l, nil
}

// take begins a transaction that holds the lock, after it has ended the one before. It creates a missing version table, and
// then returns false.
func (l *shardLock) take(ctx context.Context) (bool, error) {
	query := "begin isolation level read committed; set local idle_in_transaction_session_timeout = '1min'; " + l.turn.Lock()
	if l.session.conn.TxStatus() != 'I' {
		query = "rollback; " + query
	} else {
		query = neutral + "; " + query
	}
	_, err := l.session.conn.Exec(ctx, query).ReadAll()
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
		return err == nil, err
	case pg.Code == "42P01": // undefined_table
		l.session.recover(ctx)
		_, err = l.session.value(ctx, fmt.Sprintf("select kiloshard.make_version_table('%s')", l.turn.Schema))
		return false, err
	case pg.Code == lockNotAvailable:
		l.session.recover(ctx)
		return false, nil
	}
	return false, err
}

func (l *shardLock) renew(ctx context.Context, lost context.CancelCauseFunc) {
	defer close(l.ended)
	pause, began := lockRenewal, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		limited, cancel := context.WithTimeout(ctx, cleanUpLimit)
		got, err := l.take(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case got:
			pause, began = lockRenewal, time.Now()
		case err != nil || time.Since(began) > lockLost+lockRenewal:
			lost(fmt.Errorf("%w: %w", ErrLockLost, cmp.Or(err, errors.New("somebody else has it"))))
			return
		default:
			pause = shardPollLast
		}
	}
}

// release releases the lock, even if ctx has ended.
func (l *shardLock) release(ctx context.Context, r *run) {
	l.stop()
	<-l.ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	l.session.recover(ctx)
	r.sessions.give(l.session)
}

// turn is the exclusive lock of a shard.
func (r *run) turn(n shards.Number) sql.ShardTurn {
	return sql.ShardTurn{Shard: int(n), Schema: r.cfg.Map.Schema(n)}
}

// awaitShard waits until a shard's lock is free. It does not keep the lock.
func (r *run) awaitShard(ctx context.Context, s *session, n shards.Number) error {
	return r.poll(ctx, s, n, func() (bool, error) {
		got, err := s.value(ctx, r.turn(n).Try())
		return got == "true", err
	})
}

// tellAfter is how long a session waits for a shard's lock before an event names the holder.
const tellAfter = 10 * time.Second

// poll calls try until it returns true. It returns [ErrMoving] when the shard is being moved.
//
// It polls for the reason given at [session.lockOutTern]: the lock's holder may run a CREATE INDEX CONCURRENTLY, which
// would wait for the snapshot of a statement that waits for the lock.
func (r *run) poll(ctx context.Context, s *session, n shards.Number, try func() (bool, error)) error {
	began, told := time.Now(), false
	for pause := shardPollFirst; ; pause = min(2*pause, shardPollLast) {
		got, err := try()
		if err != nil || got {
			return err
		}
		if pause == shardPollLast {
			if moving, err := s.moving(ctx); err != nil || moving.Has(n) {
				return cmp.Or(err, ErrMoving)
			}
		}
		if !told && time.Since(began) > tellAfter {
			told = true
			r.events.send(Event{Kind: ShardWaits, Host: s.host.Name, Shard: n, Blockers: " for " + r.holders(ctx, s, n)})
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-fanout.Interrupted(ctx):
			return fmt.Errorf("interrupted while another run was at work in the shard%s", colon(r.holders(ctx, s, n)))
		}
	}
}

// holders describes the sessions that hold a shard's lock, if known.
func (r *run) holders(ctx context.Context, s *session, n shards.Number) string {
	holders, err := s.value(ctx, r.turn(n).Holders())
	if err != nil {
		return ""
	}
	return holders
}

// colon puts a colon before a text that is not empty.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// unlock releases a session's advisory locks and resets it, or closes it. It does so even if ctx has ended.
func (s *session) unlock(ctx context.Context) {
	s.ternLock = false
	if s.conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpLimit)
	defer cancel()
	query := neutral + "; select pg_catalog.pg_advisory_unlock_all()"
	if s.conn.TxStatus() != 'I' {
		query = "rollback; " + query
	}
	if _, err := s.conn.Exec(ctx, query).ReadAll(); err != nil {
		s.conn.Close(ctx)
	}
}
