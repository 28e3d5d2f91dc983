package router_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// cutConn loses the connection once a certain word is on its way.
type cutConn struct {
	net.Conn
	word string
}

func (c cutConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.Contains(p, []byte(c.word)) {
		_ = c.Close()
	}
	return n, err
}

func cutting(word string) func(*pgxpool.Config) {
	return func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return cutConn{conn, word}, err
		}
	}
}

// Whether a transaction took effect is unknown once its COMMIT was sent and not answered. It must not be run again.
func TestConnectionLostDuringCommit(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1, pool: cutting(`commit`)})
	s := b.shard(t, 9)
	ways := map[string]func(fn func(pgx.Tx) error) error{
		"Tx":    func(fn func(pgx.Tx) error) error { return s.Tx(ctx, pgx.TxOptions{}, fn) },
		"Retry": func(fn func(pgx.Tx) error) error { return soon.Tx(ctx, s, pgx.TxOptions{}, fn) },
	}
	for name, way := range ways {
		runs := 0
		err := way(func(tx pgx.Tx) error {
			runs++
			inner, err := tx.Begin(ctx)
			if err != nil {
				return err
			}
			_, err = inner.Exec(ctx, `update photos set owner = $1`, 10)
			return errors.Join(err, inner.Commit(ctx))
		})
		if runs != 1 || !errors.Is(err, router.ErrOutcomeUnknown) || router.SafeToRetry(err) || errors.As(err, new(*router.RetryError)) {
			t.Errorf("%s: %d runs, %v", name, runs, err)
		}
	}
	b.isFree(ctx, t)
}

// pgx says of a connection that broke while a statement was on its way what it says of one that was closed before.
func TestLostStatementIsNotSafeToRetry(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1, pool: cutting(`update photos`)})
	_, err := b.shard(t, 9).Exec(ctx, `update photos set owner = owner + 1`)
	if err == nil || router.SafeToRetry(err) {
		t.Errorf("got %v", err)
	}
	b.isFree(ctx, t)
}

// A COMMIT that the server refuses, or that was never sent, has a known outcome: nothing.
func TestCommitRefused(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	if _, err := s.Exec(ctx, `alter table photos add constraint late unique (owner) deferrable initially deferred`); err != nil {
		t.Fatal(err)
	}
	ending, end := context.WithCancel(ctx)
	defer end()
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values ($1, $2)`, 2, 9)
		return err
	})
	if code(err) != "23505" || errors.Is(err, router.ErrOutcomeUnknown) {
		t.Errorf("a constraint that is checked last: %v", err)
	}
	err = s.Tx(ending, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values ($1, $2)`, 2, 10)
		end()
		return err
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, router.ErrOutcomeUnknown) {
		t.Errorf("a context that ends before the COMMIT: %v", err)
	}
	err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos values ($1, $2)`, 2, 10)
		return errors.Join(err, tx.Conn().Close(ctx))
	})
	if !errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, router.ErrOutcomeUnknown) {
		t.Errorf("a connection that is closed before the COMMIT: %v", err)
	}
	var count int
	if err := s.QueryRow(ctx, `select count(*) from photos`).Scan(&count); err != nil || count != 1 {
		t.Errorf("%d rows, %v", count, err)
	}
	b.isFree(ctx, t)
}

// A session that is ended while its transaction waits to commit leaves the outcome open, since it may have committed.
func TestSessionEndedDuringCommit(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	const end = `create function pg_temp.end() returns trigger language plpgsql as
$$ begin perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(60); return null; end $$;
create constraint trigger late after insert on photos deferrable initially deferred for each row execute function pg_temp.end()`
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, end+`; insert into photos values (2)`)
		return err
	})
	if code(err) != "57P01" || !errors.Is(err, router.ErrOutcomeUnknown) || router.SafeToRetry(err) {
		t.Errorf("got %v", err)
	}
}
