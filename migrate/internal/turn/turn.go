// Package turn has the lock of a shard, by which one run at a time works on it.
package turn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/sql"
)

// A lock held for another session is taken again in a new transaction after renewal, since others wait for the old one:
// a VACUUM, or a CREATE INDEX CONCURRENTLY that found a snapshot in it. It is lost if it cannot be taken for lostAfter.
const (
	renewal   = 3 * time.Second
	lostAfter = 30 * time.Second
)

// ErrLost says that a shard's lock was lost while a session worked on the shard.
var ErrLost = errors.New("the shard's lock was lost")

// Turn is a shard on its host, and how to say that a session waits for its lock.
type Turn struct {
	Shard  shards.Number
	Schema string
	Waits  func(host, holders string) // called once if the lock was not free for a while
}

func (t Turn) lock() sql.ShardTurn { return sql.ShardTurn{Shard: int(t.Shard), Schema: t.Schema} }

// Lock is the lock of a shard, held by another session than the one that works on the shard.
type Lock struct {
	pool   *session.Pool
	holder *session.Session
	turn   Turn
	stop   context.CancelFunc
	ended  chan struct{} // closed when renew has returned
}

// Take takes a shard's lock until [Lock.Release]. A table lock, which only the owner can take, lasts for a
// transaction, and the statements that follow cannot run in one: so another session holds it. The working session takes
// the advisory lock, which lasts until its statement ends even if the program is gone. The returned context ends when the
// lock is lost.
func (t Turn) Take(ctx context.Context, pool *session.Pool, working *session.Session) (context.Context, *Lock, error) {
	holder, err := pool.Take(ctx, working.Host)
	if err != nil {
		return ctx, nil, err
	}
	l := &Lock{pool: pool, holder: holder, turn: t, ended: make(chan struct{})}
	err = t.poll(ctx, working, func() (bool, error) {
		if got, err := l.take(ctx); !got || err != nil {
			return false, err
		}
		got, err := working.Value(ctx, session.EndWhenIdle+"; "+t.lock().Mark())
		if err == nil && got != "true" {
			holder.Recover(ctx)
		}
		return got == "true", err
	})
	if err != nil {
		holder.Recover(ctx)
		pool.Give(holder)
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
func (l *Lock) take(ctx context.Context) (bool, error) {
	query := "begin isolation level read committed; set local idle_in_transaction_session_timeout = '1min'; " + l.turn.lock().Lock()
	if l.holder.Conn.TxStatus() != 'I' {
		query = "rollback; " + query
	} else {
		query = session.Neutral + "; " + query
	}
	_, err := l.holder.Conn.Exec(ctx, query).ReadAll()
	var pg *pgconn.PgError
	switch {
	case !errors.As(err, &pg):
		return err == nil, err
	case pg.Code == "42P01": // undefined_table
		l.holder.Recover(ctx)
		_, err = l.holder.Value(ctx, fmt.Sprintf("select kiloshard.make_version_table('%s')", l.turn.Schema))
		return false, err
	case session.WaitedInVain(err):
		l.holder.Recover(ctx)
		return false, nil
	}
	return false, err
}

func (l *Lock) renew(ctx context.Context, lost context.CancelCauseFunc) {
	defer close(l.ended)
	pause, began := renewal, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		limited, cancel := context.WithTimeout(ctx, session.CleanUpLimit)
		got, err := l.take(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case got:
			pause, began = renewal, time.Now()
		case err != nil || time.Since(began) > lostAfter+renewal:
			lost(fmt.Errorf("%w: %w", ErrLost, cmp.Or(err, errors.New("another session has it"))))
			return
		default:
			pause = session.LongestPause
		}
	}
}

// Release releases the lock, even if ctx has ended.
func (l *Lock) Release(ctx context.Context) {
	l.stop()
	<-l.ended
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), session.CleanUpLimit)
	defer cancel()
	l.holder.Recover(ctx)
	l.pool.Give(l.holder)
}

// Await waits until a shard's lock is free. It does not keep the lock.
func (t Turn) Await(ctx context.Context, s *session.Session) error {
	return t.poll(ctx, s, func() (bool, error) {
		got, err := s.Value(ctx, t.lock().Try())
		return got == "true", err
	})
}

// waitsAfter is how long a session waits for a shard's lock before it says who holds it.
const waitsAfter = 10 * time.Second

// poll calls try until it returns true. It returns [session.ErrMoving] when the shard is being moved.
//
// It polls for the reason given at [session.Session.LockOutTern]: the lock's holder may run a CREATE INDEX CONCURRENTLY, which
// would wait for the snapshot of a statement that waits for the lock.
func (t Turn) poll(ctx context.Context, s *session.Session, try func() (bool, error)) error {
	began, said := time.Now(), false
	for pause := session.FirstPause; ; pause = min(2*pause, session.LongestPause) {
		got, err := try()
		if err != nil || got {
			return err
		}
		if pause == session.LongestPause {
			if moving, err := s.Moving(ctx); err != nil || moving.Has(t.Shard) {
				return cmp.Or(err, session.ErrMoving)
			}
		}
		if !said && time.Since(began) > waitsAfter {
			said = true
			t.Waits(s.Host.Name, t.holders(ctx, s))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-fanout.Interrupted(ctx):
			return fmt.Errorf("interrupted while another run was at work in the shard%s", colon(t.holders(ctx, s)))
		}
	}
}

// holders describes the sessions that hold a shard's lock, if known.
func (t Turn) holders(ctx context.Context, s *session.Session) string {
	holders, err := s.Value(ctx, t.lock().Holders())
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
