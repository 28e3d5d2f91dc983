package router_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// wanderers are functions that move the path of the session, in ways that no look at a statement tells.
var wanderers = map[string]string{
	"set schema":   `language plpgsql as $$ begin set schema 'shard_00063'; return 1; end $$`,
	"reset all":    `language plpgsql as $$ begin reset all; return 1; end $$`,
	"set_config":   `language plpgsql as $$ begin perform set_config('search' || '_path', 'shard_00063', false); return 1; end $$`,
	"local":        `language plpgsql as $$ begin perform set_config('search' || '_path', 'shard_00063', true); return 1; end $$`,
	"begin atomic": `language sql begin atomic select set_config('search' || '_path', 'shard_00063', false); select 1; end`,
}

// Every row carries the number of its shard. intact fails the test unless shard 63 has what it had, and says how often shard 1
// was written to.
func (b *testBundle) intact(ctx context.Context, t *testing.T, what string) (written int) {
	t.Helper()
	var title string
	var rows int
	if err := b.plain.QueryRow(ctx, `select max(title), count(*) from shard_00063.photos`).Scan(&title, &rows); err != nil || title != "of shard 63" || rows != 1 {
		t.Fatalf("%s: shard 63 has %d rows, %q, %v", what, rows, title, err)
	}
	if err := b.plain.QueryRow(ctx, `select coalesce(max(title), '0')::int from shard_00001.photos where title ~ '^[0-9]+$'`).Scan(&written); err != nil {
		t.Fatal(err)
	}
	return written
}

const countUp = `update photos set title = case when title ~ '^[0-9]+$' then (title::int + 1)::text else '1' end`

// A function may move the path of a session as it likes: the next statement reads and writes its own shard.
func TestFunctionsThatMoveThePath(t *testing.T) {
	t.Parallel()
	for name, body := range wanderers {
		for _, when := range []string{"before", "after"} {
			t.Run(name+", made "+when+" the connection", func(t *testing.T) {
				t.Parallel()
				b, ctx := setup(t, options{conns: 1})
				make := `create function public.f() returns int ` + body
				if when == "before" {
					b.run(ctx, t, make)
				}
				s, other := b.shard(t, 1), b.shard(t, 63)
				ask(ctx, t, s, `select owner::text from photos where id = 1`)
				ask(ctx, t, other, `select owner::text from photos where id = 1`)
				if when == "after" {
					b.run(ctx, t, make)
				}
				want := 0
				for call, do := range map[string]func() error{
					"query": func() error { return s.QueryRow(ctx, `select public.f()`).Scan(new(int)) },
					"exec":  func() error { _, err := s.Exec(ctx, `select public.f()`); return err },
					"transaction": func() error {
						return s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
							if _, err := tx.Exec(ctx, `select public.f()`); err != nil {
								return err
							}
							want++
							_, err := tx.Exec(ctx, countUp)
							return err
						})
					},
					"rolled back": func() error {
						tx, err := s.Begin(ctx)
						if err != nil {
							return err
						}
						_, err = tx.Exec(ctx, `select public.f()`)
						return errors.Join(err, tx.Rollback(ctx))
					},
				} {
					for range 2 {
						if err := do(); err != nil {
							t.Errorf("%s: %v", call, err)
						}
						if got := ask(ctx, t, s, `select owner::text from photos where id = 1`); got != "1" {
							t.Errorf("after %s shard 1 was answered by %s", call, got)
						}
						if _, err := s.Exec(ctx, countUp); err != nil {
							t.Errorf("after %s: %v", call, err)
						}
						want++
						if _, err := s.Exec(ctx, countUp+` where id = $1`, 1); err != nil {
							t.Errorf("after %s: %v", call, err)
						}
						want++
						if got := b.intact(ctx, t, call); got != want {
							t.Errorf("after %s shard 1 was written to %d times, expected %d", call, got, want)
						}
					}
				}
			})
		}
	}
}

// A shard that is not on its host, or whose schema the role may not use, is an error: Postgres would pass over it, and take
// a table of a schema behind it.
func TestShardIsNotThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, do, want string }{
		{"dropped", `drop schema shard_00005 cascade`, `schema "shard_00005" does not exist`},
		{"renamed", `alter schema shard_00005 rename to shard_00005__moved_1`, `schema "shard_00005" does not exist`},
		{"no usage", `revoke usage on schema shard_00005 from photos_app`, "permission denied for schema shard_00005"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			role := "photos_app_" + strings.ReplaceAll(c.name, " ", "_") + fmt.Sprint(routertest.Unique())
			b, ctx := setup(t, options{conns: 1, searchPath: []string{"shared"}, pool: func(cfg *pgxpool.Config) {
				cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
					_, err := conn.Exec(ctx, `set role `+role)
					return err
				}
			}})
			b.run(ctx, t, `create schema shared; create table shared.photos (id bigint primary key, owner bigint, title text);
create role `+role+`; grant all on schema shared, shard_00005 to `+role+`; grant all on all tables in schema shared, shard_00005 to `+role)
			t.Cleanup(func() { b.run(context.WithoutCancel(ctx), t, `drop owned by `+role+`; drop role `+role) })
			checkShardIsNotThere(ctx, t, b, strings.ReplaceAll(c.do, "photos_app", role), c.want)
		})
	}
}

func TestShardIsNotThereBehindPgBouncer(t *testing.T) {
	t.Parallel()
	setup := behindPgBouncer(t)
	for _, do := range []string{`drop schema shard_00005 cascade`, `alter schema shard_00005 rename to shard_00005__moved_1`} {
		t.Run(do, func(t *testing.T) {
			b, ctx := setup(t, options{conns: 1, searchPath: []string{"shared"}})
			b.run(ctx, t, `create schema shared; create table shared.photos (id bigint primary key, owner bigint, title text)`)
			checkShardIsNotThere(ctx, t, b, do, `schema "shard_00005" does not exist`)
		})
	}
}

// checkShardIsNotThere checks that after do, SQL for shard 5 fails with the wanted text, and that shared.photos is not written to.
func checkShardIsNotThere(ctx context.Context, t *testing.T, b *testBundle, do, want string) {
	t.Helper()
	s := b.shard(t, 5)
	if _, err := s.Exec(ctx, `update photos set title = 'mine' where id = $1`, 1); err != nil {
		t.Fatal(err)
	}
	b.run(ctx, t, do)
	var batch pgx.Batch
	batch.Queue(`insert into photos values (2, 5, 'x')`)
	for how, err := range map[string]error{
		"exec":   second(s.Exec(ctx, `insert into photos values (2, 5, 'x')`)),
		"args":   second(s.Exec(ctx, `insert into photos values ($1, 5, 'x')`, 2)),
		"known":  second(s.Exec(ctx, `update photos set title = 'mine' where id = $1`, 1)),
		"query":  s.QueryRow(ctx, `select count(*) from photos`).Scan(new(int)),
		"batch":  s.SendBatch(ctx, &batch).Close(),
		"begin":  second(s.Begin(ctx)),
		"copy":   second(s.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id"}, pgx.CopyFromRows([][]any{{int64(9)}}))),
		"nextid": second(s.NextID(ctx)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "shard 5") {
			t.Errorf("%s: got %v, want %s", how, err, want)
		}
	}
	var rows int
	if err := b.plain.QueryRow(ctx, `select count(*) from shared.photos`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("shared.photos has %d rows, %v", rows, err)
	}
}

func second[T any](_ T, err error) error { return err }
