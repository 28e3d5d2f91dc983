package router_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// leaving are ways to send a statement that takes long.
var leaving = map[string]func(ctx context.Context, s router.Shard) error{
	"Exec": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `select pg_sleep(10)`)
		return err
	},
	"Exec of two": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `update photos set title = title; select pg_sleep(10)`)
		return err
	},
	"Exec with an argument": func(ctx context.Context, s router.Shard) error {
		_, err := s.Exec(ctx, `select pg_sleep($1)`, 10)
		return err
	},
	"Query": func(ctx context.Context, s router.Shard) error {
		return s.QueryRow(ctx, `select pg_sleep(10)`).Scan(nil)
	},
	"Query of a write": func(ctx context.Context, s router.Shard) error {
		return s.QueryRow(ctx, `update photos set title = title returning pg_sleep(10)`).Scan(nil)
	},
	"rows": func(ctx context.Context, s router.Shard) error {
		rows, err := s.Query(ctx, `select repeat('x', 1000), pg_sleep(case when i > 1000 then 0.01 else 0 end) from generate_series(1, 2000) i`)
		if err != nil {
			return err
		}
		for rows.Next() {
			continue
		}
		return rows.Err()
	},
	"a cancel request in vain": func(ctx context.Context, s router.Shard) error {
		var n int
		return s.QueryRow(ctx, `select stubborn()`).Scan(&n)
	},
}

// TestLeave has callers leave before their statement has ended: they are told so, whatever the server says, the statement ends,
// and its connection is used again.
func TestLeave(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	if _, err := s.Exec(ctx, `create function stubborn() returns int language plpgsql as $$ begin
		perform pg_sleep(10);
		return 1;
	exception when query_canceled then
		return 2;
	end $$`); err != nil {
		t.Fatal(err)
	}
	before := backend(ctx, t, s)
	for what, call := range leaving {
		inOneOf20(t, what+": the connection was closed each time", func(i int) bool { // a busy server is not given the time
			limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			want := context.DeadlineExceeded
			if i%2 == 1 {
				cancel()
				limited, cancel = context.WithCancel(ctx)
				want = context.Canceled
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			if err := call(limited, s); !errors.Is(err, want) {
				t.Errorf("%s: got %v, expected %v", what, err, want)
			}
			cancel()
			last := before
			before = backend(ctx, t, s)
			return before == last
		})
	}
	b.isFree(ctx, t)
}

// inOneOf20 checks that a try succeeds, of 20.
func inOneOf20(t *testing.T, otherwise string, try func(i int) bool) {
	t.Helper()
	for i := range 20 {
		if try(i) {
			return
		}
	}
	t.Error(otherwise)
}

// TestLeaveSlowly has callers leave while the server is slow to take cancel requests, as it is while it starts many processes: the
// connection is kept, since a new one would make the server slower still.
func TestLeaveSlowly(t *testing.T) {
	t.Parallel()
	var connected atomic.Bool
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if connected.Load() {
				time.Sleep(100 * time.Millisecond)
			}
			return dial(ctx, network, address)
		}
	}})
	s := b.shard(t, 1)
	before := backend(ctx, t, s)
	connected.Store(true)
	inOneOf20(t, "the connection was closed each time", func(int) bool { // a busy machine is slower than that
		limited, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if _, err := s.Exec(limited, `select pg_sleep(10)`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, expected %v", err, context.DeadlineExceeded)
		}
		cancel()
		last := before
		before = backend(ctx, t, s)
		return before == last
	})
	b.isFree(ctx, t)
}

// TestLeaveCostsNoConnection has callers leave while another connection of the host is free: that one cancels the statement, and
// nothing connects to the server.
func TestLeaveCostsNoConnection(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	b, ctx := setup(t, options{conns: 2, pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, address)
		}
	}})
	s := b.shard(t, 1)
	inOneOf20(t, "the server had a new connection each time", func(int) bool { // a busy machine does not answer in time
		tx, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		backend(ctx, t, s)
		if err := tx.Rollback(ctx); err != nil { // both connections are there, and were used a moment ago
			t.Fatal(err)
		}
		before := dials.Load()
		limited, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if _, err := s.Exec(limited, `select pg_sleep(10)`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, expected %v", err, context.DeadlineExceeded)
		}
		cancel()
		backend(ctx, t, s)
		return dials.Load() == before
	})
	b.isFree(ctx, t)
}

// TestLeaveHitsNobodyElse has callers leave at any time, and others use the connection at once: nothing cancels their statements,
// neither a cancel request nor another session.
func TestLeaveHitsNobodyElse(t *testing.T) {
	t.Parallel()
	for _, conns := range []int32{1, 2} {
		b, ctx := setup(t, options{conns: conns})
		s := b.shard(t, 1)
		left := 0
		for i := range 200 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(4000))*time.Microsecond)
			var err error
			if i%2 == 0 {
				_, err = s.Exec(limited, `select pg_sleep(0.002)`)
			} else {
				err = s.QueryRow(limited, `select pg_sleep(0.002)`).Scan(nil)
			}
			cancel()
			if err != nil {
				left++
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			backend(ctx, t, s)
		}
		if left < 20 {
			t.Errorf("%d callers left, so that the test proves nothing", left)
		}
	}
}

// backend returns which session of the server works for a shard.
func backend(ctx context.Context, t *testing.T, s router.Shard) (pid int) {
	t.Helper()
	if err := s.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// A transaction's caller who leaves loses the connection: what comes after that in the transaction must not run.
func TestLeaveTx(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		if _, err := tx.Exec(limited, `select pg_sleep(10)`); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, expected the end of the context", err)
		}
		_, err := tx.Exec(ctx, `update photos set title = 'too late'`)
		return err
	})
	if err == nil {
		t.Error("the transaction went on")
	}
	b.isFree(ctx, t)
}
