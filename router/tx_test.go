package router_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestTransaction(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1, dsn: execMode(mode)})
			s := b.shard(t, 9)

			tx, err := s.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadWrite, DeferrableMode: pgx.Deferrable})
			if err != nil {
				t.Fatal(err)
			}
			var level, deferrable string
			if err := tx.QueryRow(ctx, `select current_setting('transaction_isolation'), current_setting('transaction_deferrable')`).Scan(&level, &deferrable); err != nil || level != "serializable" || deferrable != "on" {
				t.Errorf("%s, deferrable %s, %v", level, deferrable, err)
			}
			if _, err := tx.Exec(ctx, `insert into photos values ($1)`, 2); err != nil {
				t.Error(err)
			}
			inner, err := tx.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := inner.Exec(ctx, `delete from photos; select 1`); err != nil {
				t.Error(err)
			}
			if err := inner.Rollback(ctx); err != nil {
				t.Error(err)
			}
			if _, err := inner.Exec(ctx, `select 1`); !same(err, pgx.ErrTxClosed) {
				t.Errorf("a savepoint that is over: %v", err)
			}
			if inner, err = tx.Begin(ctx); err != nil {
				t.Fatal(err)
			}
			if _, err := inner.Exec(ctx, `nonsense`); err == nil {
				t.Error("nonsense went through")
			}
			if err := inner.Rollback(ctx); err != nil {
				t.Error(err)
			}
			var batch pgx.Batch
			var count int
			batch.Queue(`insert into photos values ($1)`, 3)
			batch.Queue(`select count(*) from photos`).QueryRow(func(row pgx.Row) error { return row.Scan(&count) })
			if err := tx.SendBatch(ctx, &batch).Close(); err != nil || count != 3 {
				t.Errorf("batch: %d, %v", count, err)
			}
			if err := tx.Commit(ctx); err != nil {
				t.Fatal(err)
			}
			if err := tx.Commit(ctx); !same(err, pgx.ErrTxClosed) {
				t.Errorf("a second commit: %v", err)
			}
			if err := tx.Rollback(ctx); !same(err, pgx.ErrTxClosed) {
				t.Errorf("a rollback after the commit: %v", err)
			}
			for name, call := range afterEnd(tx) {
				if err := call(ctx); !errors.Is(err, pgx.ErrTxClosed) {
					t.Errorf("%s after the commit: %v", name, err)
				}
			}
			if err := b.plain.QueryRow(ctx, `select count(*) from shard_00009.photos`).Scan(&count); err != nil || count != 3 {
				t.Errorf("%d rows, %v", count, err)
			}
			b.isFree(ctx, t)
		})
	}
}

// afterEnd are the methods of a transaction that must do nothing once it is over.
func afterEnd(tx pgx.Tx) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Begin": func(ctx context.Context) error { _, err := tx.Begin(ctx); return err },
		"Exec":  func(ctx context.Context) error { _, err := tx.Exec(ctx, `select 1`); return err },
		"Query": func(ctx context.Context) error {
			rows, err := tx.Query(ctx, `select 1`)
			rows.Close()
			return err
		},
		"QueryRow": func(ctx context.Context) error { return tx.QueryRow(ctx, `select 1`).Scan(nil) },
		"Prepare":  func(ctx context.Context) error { _, err := tx.Prepare(ctx, "x", `select 1`); return err },
		"SendBatch": func(ctx context.Context) error {
			var batch pgx.Batch
			batch.Queue(`select 1`)
			return tx.SendBatch(ctx, &batch).Close()
		},
		"CopyFrom": func(ctx context.Context) error {
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, pgx.CopyFromRows(nil))
			return err
		},
		"LargeObjects": func(ctx context.Context) error {
			objects := tx.LargeObjects()
			_, err := objects.Create(ctx, 0)
			return err
		},
	}
}

func TestTxCallback(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	err := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `delete from photos`)
		return errors.Join(err, io.ErrUnexpectedEOF)
	})
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "shard") {
		t.Errorf("the callback's error came as %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `delete from photos`)
			panic("in a test")
		})
	}()
	err = s.Tx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `delete from photos`)
		return err
	})
	if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "25006" {
		t.Errorf("got %v", err)
	}
	err = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, `nonsense`)
		return nil
	})
	if !same(err, pgx.ErrTxCommitRollback) {
		t.Errorf("got %v", err)
	}
	err = s.Tx(ctx, pgx.TxOptions{BeginQuery: "begin nonsense"}, func(pgx.Tx) error { return nil })
	if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "42601" {
		t.Errorf("got %v", err)
	}
	var count int
	if err := s.QueryRow(ctx, `select count(*) from photos`).Scan(&count); err != nil || count != 1 {
		t.Errorf("%d rows, %v", count, err)
	}
	b.isFree(ctx, t)
}

// A path that a transaction leaves on the session must not outlive it for anybody.
func TestSetInTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	owner := func(q queryer) (owner int) {
		if err := q.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner); err != nil {
			t.Error(err)
		}
		return owner
	}
	err := b.shard(t, 1).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if got := owner(tx); got != 1 {
			t.Errorf("got shard %d, want 1", got)
		}
		_, err := tx.Exec(ctx, `set search_path = shard_00002`)
		if got := owner(tx); got != 1 {
			t.Errorf("after SET got shard %d, want 1", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.shard(t, 1).Exec(ctx, `set search_path = shard_00002`); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, 2, 1} {
		if got := owner(b.shard(t, n)); got != n {
			t.Errorf("got shard %d, want %d", got, n)
		}
	}
}

func TestTransactionEndedBySQL(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	tx, err := b.shard(t, 1).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `commit`); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(ctx, `select owner from photos`).Scan(nil); err == nil || !strings.Contains(err.Error(), "ended by a statement of its own") {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Error(err)
	}
	b.isFree(ctx, t)
}

func TestPrepareInTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	for _, n := range []int{1, 2} { // the same name, in the same session
		err := b.shard(t, n).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			desc, err := tx.Prepare(ctx, "owner", `select owner from photos where id = $1`)
			if err != nil || len(desc.ParamOIDs) != 1 || len(desc.Fields) != 1 {
				t.Errorf("%+v, %v", desc, err)
			}
			var owner int
			err = tx.QueryRow(ctx, "owner", 1).Scan(&owner)
			if owner != n {
				t.Errorf("shard %d was answered by %d", n, owner)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if err := b.shard(t, 1).QueryRow(ctx, "owner", 1).Scan(nil); err == nil {
		t.Error("the name outlived its transaction")
	}
}

func TestLargeObjects(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	err := b.shard(t, 1).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		objects := tx.LargeObjects()
		oid, err := objects.Create(ctx, 0)
		if err != nil {
			return err
		}
		object, err := objects.Open(ctx, oid, pgx.LargeObjectModeWrite|pgx.LargeObjectModeRead)
		if err != nil {
			return err
		}
		_, err = object.Write([]byte("hello"))
		return errors.Join(err, objects.Unlink(ctx, oid))
	})
	if err != nil {
		t.Error(err)
	}
}

// The error of a BeginQuery is the server's, and nothing is left of it.
func TestBeginQueryThatFails(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	for query, want := range map[string]string{`select 1 / (pg_backend_pid() - pg_backend_pid())`: "22012", `begin isolation level none`: "42601", `select nothing`: "42703"} {
		if _, err := s.BeginTx(ctx, pgx.TxOptions{BeginQuery: query}); isSQLState(err, want) != nil {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
	if got := ask(ctx, t, s, `select owner::text from photos where id = 1`); got != "1" {
		t.Errorf("shard 1 was answered by %s", got)
	}
	b.isFree(ctx, t)
}

// A BeginQuery that ends its transaction does not go on under a path that another shard's statement has left on the session.
func TestBeginQueryThatCommits(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `create function public.wander() returns int language plpgsql as $$ begin perform set_config('search_path', 'shard_00063', false); return 1; end $$`)
	for _, query := range []string{`do $$ begin commit; update photos set title = '7'; end $$`, `do $$ begin rollback; delete from photos; end $$`} {
		if _, err := b.shard(t, 5).Exec(ctx, `select public.wander()`); err != nil {
			t.Fatal(err)
		}
		if _, err := b.shard(t, 7).BeginTx(ctx, pgx.TxOptions{BeginQuery: query}); err == nil {
			t.Errorf("%s: no error", query)
		}
		if got := ask(ctx, t, b.shard(t, 63), `select string_agg(title, ',') from photos`); got != "of shard 63" {
			t.Errorf("%s: shard 63 has %s", query, got)
		}
	}
	b.isFree(ctx, t)
}

// SET stores a path in another spelling than set_config: without the quotes that a name does not need.
func TestSetFirstWithExtraSchemas(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{conns: 1, dsn: execMode(mode), searchPath: []string{"shared", "user", "Odd, \"name"}})
			s := b.shard(t, 9)
			for _, first := range []string{"set local statement_timeout = 1000", "savepoint a", "set transaction isolation level serializable"} {
				err := pgx.BeginFunc(ctx, s, func(tx pgx.Tx) error {
					_, err := tx.Exec(ctx, first+"; update photos set id = id; select 1")
					return err
				})
				if err != nil {
					t.Errorf("%s in one string: %v", first, err)
				}
				if mode == "cache_statement" && strings.HasPrefix(first, "set transaction") {
					continue // what is prepared first is a query
				}
				err = pgx.BeginFunc(ctx, s, func(tx pgx.Tx) error {
					var batch pgx.Batch
					batch.Queue(first)
					batch.Queue("update photos set id = $1 where id = $1", 1)
					batch.Queue("select count(*) from photos")
					return tx.SendBatch(ctx, &batch).Close()
				})
				if err != nil {
					t.Errorf("%s in a batch: %v", first, err)
				}
			}
			for _, moved := range []string{"set local search_path = public; select 1", "set local statement_timeout = 1000; set local search_path = public; select 1", "commit; select 1"} {
				tx, err := s.Begin(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(ctx, moved); err == nil || !strings.Contains(err.Error(), "has changed search_path") {
					t.Errorf("%s: %v", moved, err)
				}
				_ = tx.Rollback(ctx)
			}
			b.isFree(ctx, t)
		})
	}
}
