package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// What a table's change does to statements that are prepared already must not be seen by callers.
func TestTableChangesBetweenCalls(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		sql    string
		args   []any
		change string
		later  []any  // arguments after the change; the same if nil
		want   string // the first value after it
	}{
		{"another column", `select * from photos where id = $1`, []any{1}, `alter table photos add column extra text`, nil, "1"},
		{"one column fewer", `select * from photos where id = $1`, []any{1}, `alter table photos drop column title`, nil, "1"},
		{"a column with another name", `select * from photos where id = $1`, []any{1}, `alter table photos rename title to name`, nil, "1"},
		{"a result of another type", `select owner from photos where id = $1`, []any{1}, `alter table photos alter owner type text`, nil, "9"},
		{"a number becomes a text", `select id from photos where owner = $1`, []any{"9"}, `alter table photos alter owner type text; update photos set owner = 'nine'`, []any{"nine"}, "1"},
		{"a small number becomes a big one", `insert into small values ($1) returning 1`, []any{7}, `alter table small alter n type bigint`, []any{1 << 40}, "1"},
		{"a table made anew", `select title from photos where id = $1`, []any{1}, `drop table photos; create table photos (id bigint, title text); insert into photos values (1, 'anew')`, nil, "anew"},
		{"a table made anew with other columns", `select * from photos where id = $1`, []any{1}, `drop table photos; create table photos (title text, id int); insert into photos values ('anew', 1)`, nil, "anew"},
		{"an enum made anew", `select mood from moods where mood = $1`, []any{"good"}, `drop table moods; drop type mood; create type mood as enum ('bad', 'good'); create table moods (mood mood); insert into moods values ('good')`, nil, "good"},
		{"all statements gone", `select title from photos where id = $1`, []any{1}, ``, nil, "old"},
	}
	ways := map[string]func(ctx context.Context, s router.Shard, sql string, args []any) (string, error){
		"Query": func(ctx context.Context, s router.Shard, sql string, args []any) (string, error) {
			rows, err := s.Query(ctx, sql, args...)
			if err != nil {
				return "", err
			}
			return pgx.CollectExactlyOneRow(rows, firstValue)
		},
		"batch": func(ctx context.Context, s router.Shard, sql string, args []any) (value string, err error) {
			var batch pgx.Batch
			batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
				value, err = pgx.CollectExactlyOneRow(rows, firstValue)
				return err
			})
			batch.Queue(`select 1`)
			return value, s.SendBatch(ctx, &batch).Close()
		},
	}
	b, ctx := setup(t, options{conns: 1})
	n := 0 // each case has a shard of its own
	for _, test := range tests {
		for way, ask := range ways {
			n++
			s := b.shard(t, n)
			t.Run(test.name+" "+way, func(t *testing.T) {
				inShard := func(sql string) {
					b.run(ctx, t, `set search_path = `+s.Schema()+`; `+sql+`; reset search_path`)
				}
				inShard(`update photos set owner = 9, title = 'old'; create table small (n int);
					create type mood as enum ('good'); create table moods (mood mood); insert into moods values ('good')`)
				if _, err := ask(ctx, s, test.sql, test.args); err != nil {
					t.Fatal(err)
				}
				if test.change != "" {
					inShard(test.change)
				} else if _, err := s.Exec(ctx, `deallocate all`); err != nil {
					t.Fatal(err)
				}
				args := test.later
				if args == nil {
					args = test.args
				}
				got, err := ask(ctx, s, test.sql, args)
				if err != nil || got != test.want {
					t.Errorf("got %q, %v; want %q", got, err, test.want)
				}
			})
		}
	}
}

func firstValue(row pgx.CollectableRow) (string, error) {
	values, err := row.Values()
	if err != nil || len(values) == 0 {
		return "", err
	}
	return fmt.Sprint(values[0]), nil
}

// Inside a transaction nothing can be repeated unseen. The next one works.
func TestTableChangesInTransaction(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	ask := func() error {
		return b.shard(t, 9).Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `select * from photos`)
			if err != nil {
				return err
			}
			_, err = pgx.CollectRows(rows, firstValue)
			return err
		})
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.shard(t, 9).Exec(ctx, `alter table photos add column extra text`); err != nil {
		t.Fatal(err)
	}
	err := ask()
	if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != "0A000" {
		t.Errorf("got %v, want 0A000", err)
	}
	if err := ask(); err != nil {
		t.Errorf("the next one: %v", err)
	}
	if _, err := b.shard(t, 9).Exec(ctx, `deallocate all`); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err != nil {
		t.Errorf("deallocate all: %v", err)
	}
}

// An error that preparing anew cannot mend is given to the caller, and the statement is not run a second time.
func TestErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	b.run(ctx, t, `create sequence shard_00009.runs; create function shard_00009.fail(code text) returns int language plpgsql as
		$$ begin perform nextval('shard_00009.runs'); if code <> '' then raise exception 'failed' using errcode = code; end if; return 1; end $$`)
	var runs int64
	for _, code := range []string{"", "42P01", "0A000", "22P02", "40001"} {
		err := s.QueryRow(ctx, `select fail($1)`, code).Scan(new(int))
		if code != "" && (err == nil || !strings.Contains(err.Error(), code)) || code == "" && err != nil {
			t.Errorf("%s: %v", code, err)
		}
		before := runs
		if err := b.plain.QueryRow(ctx, `select last_value from shard_00009.runs`).Scan(&runs); err != nil || runs != before+1 {
			t.Errorf("%s: ran %d times, %v", code, runs-before, err)
		}
	}
}

// That one statement is gone does not mean that the others are.
func TestOneStatementGone(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	ask := func(want int64) {
		t.Helper()
		var owner int64
		if err := s.QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(&owner); err != nil || owner != want {
			t.Errorf("got %d, %v; want %d", owner, err, want)
		}
	}
	ask(9)
	for range 2 {
		var name string
		err := s.QueryRow(ctx, `select name from pg_prepared_statements where statement like 'select %' and name ~ '^kiloshard_[0-9a-f]{32}$' order by prepare_time desc limit 1`, pgx.QueryExecModeExec).Scan(&name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Exec(ctx, `deallocate `+pgx.Identifier{name}.Sanitize()); err != nil {
			t.Fatal(err)
		}
		ask(9)
		if err := s.QueryRow(ctx, `select name from pg_prepared_statements where name in ('kiloshard_entry', 'kiloshard_base')`, pgx.QueryExecModeExec).Scan(&name); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Exec(ctx, `deallocate `+name); err != nil {
			t.Fatal(err)
		}
		ask(9)
	}
}

// A caller may deallocate all prepared statements, the router's own among them: nobody else is to notice.
func TestDeallocateAll(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	if _, err := s.Exec(ctx, `deallocate all`); err != nil {
		t.Fatal(err)
	}
	if err := b.shard(t, 2).QueryRow(ctx, `select owner from photos where id = $1`, 1).Scan(new(int)); err != nil {
		t.Errorf("the next caller: %v", err)
	}
	if _, err := s.Exec(ctx, `deallocate all; update photos set title = ''`); err != nil {
		t.Errorf("a string: %v", err)
	}
}

// Reads that wait together while somebody deallocates all prepared statements are answered.
func TestGroupAfterDeallocateAll(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	const query = `select owner::text from photos where id = 1`
	familiar(ctx, t, b.shard(t, 9), query)
	if _, err := b.shard(t, 1).Exec(ctx, `deallocate all`); err != nil {
		t.Fatal(err)
	}
	letGo := hold(ctx, t, b.shard(t, 3))
	var reads sync.WaitGroup
	for i := range 3 {
		reads.Go(func() {
			if got := ask(ctx, t, b.shard(t, 4), query); got != "4" {
				t.Errorf("shard 4 was answered %q", got)
			}
		})
		b.waits(ctx, t, i+1)
	}
	letGo()
	reads.Wait()
}

func TestHookThatDiscardsAll(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
		cfg.AfterRelease = func(conn *pgx.Conn) bool {
			_, err := conn.Exec(context.Background(), `discard all`)
			return err == nil
		}
	}})
	for i := range 3 {
		if _, err := b.shard(t, 1).Exec(ctx, fmt.Sprintf(`update photos set title = $1 where id = %d`, i), "x"); err != nil {
			t.Error(err)
		}
	}
}
