package router_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kiloshard/kiloshard/router/internal/routertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A function has the name of one of Postgres's own, and writes. When the answer to its first call is lost, it is not
// called a second time, unless the server has held the first call to reading.
func TestFunctionIsCalledOnce(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err == nil && conns.Add(1) <= 2 {
				conn = &losingConn{Conn: conn, after: []byte("log($1")}
			}
			return conn, err
		}
	}})
	b.run(ctx, t, `create function shard_00001.log(a text, b text) returns int language plpgsql as $$ begin
insert into photos (id, title) values (shard_00001.next_id(), a || b); return 1; end $$`)
	s := b.shard(t, 1)
	good, bad := 0, 0
	for range 3 {
		for _, err := range []error{
			s.QueryRow(ctx, `select log($1, $2)`, "a", "b").Scan(new(int)),
			func() error { _, err := s.Exec(ctx, `select log($1, $2)`, "a", "b"); return err }(),
		} {
			if err == nil {
				good++
			} else {
				bad++
			}
		}
	}
	var called int
	err := b.plain.QueryRow(ctx, `select count(*) from shard_00001.photos where title = 'ab'`).Scan(&called)
	if err != nil || called < good || called > good+bad || good == 0 {
		t.Errorf("%d calls that succeeded and %d that failed have written %d rows, %v", good, bad, called, err)
	}
	if conns.Load() < 3 {
		t.Errorf("%d connections, expected that two were lost", conns.Load())
	}
}

// TestNoGroups calls a function that writes and swallows its own errors, hidden in ways that no words show. With NoGroups each call
// has its effect.
func TestNoGroups(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{alone: true})
	b.run(ctx, t, `create function shard_00001.note() returns int language plpgsql as $$ begin
insert into photos (id, title) values (shard_00001.next_id(), 'noted'); return 1; exception when others then return 2; end $$;
create view shard_00001.noting as select shard_00001.note() as n;
create function shard_00001.log(a text, b text) returns int language sql as 'select n from shard_00001.noting'`)
	s, calls := b.shard(t, 1), 0
	for range 5 {
		for _, query := range []string{`select n from noting`, `select log('a', 'b')`} {
			var n int
			if err := s.QueryRow(ctx, query).Scan(&n); err != nil || n != 1 {
				t.Errorf("%s: got %d, %v", query, n, err)
			}
			calls++
		}
	}
	var noted int
	if err := b.plain.QueryRow(ctx, `select count(*) from shard_00001.photos where title = 'noted'`).Scan(&noted); err != nil || noted != calls {
		t.Errorf("%d calls have written %d rows, %v", calls, noted, err)
	}
}

// losingConn loses the answer to what is executed after a text was seen.
type losingConn struct {
	net.Conn
	after []byte
	seen  bool        // by Write alone
	lose  atomic.Bool // pgx reads beside a write that takes long
}

func (c *losingConn) Write(b []byte) (int, error) {
	if c.seen {
		c.lose.Store(true)
	}
	c.seen = c.seen || bytes.Contains(b, c.after)
	return c.Conn.Write(b)
}

func (c *losingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b) // the server has done it
	if c.lose.Load() {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// A statement that fails has failed once, whether it was sent alone or with others.
func TestFailsOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state, sql string
		good, bad  any
		spoil      string
	}{
		{"22P02", `select $1::text::int`, "1", "x", ""},
		{"22012", `select 1 / $1::int`, 1, 0, ""},
		{"42P01", `select count(*)::int + $1::int from photos`, 1, 1, `drop table shard_00001.photos`},
		{"42703", `select count(owner)::int + $1::int from photos`, 1, 1, `alter table shard_00001.photos drop column owner`},
		{"42501", `select count(*)::int + $1::int from photos`, 1, 1, `revoke all on shard_00001.photos from app`},
	} {
		t.Run(c.state, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			errs := map[string]int{}
			role := fmt.Sprintf("app_%s_%d", strings.ToLower(c.state), routertest.Unique())
			b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
				cfg.ConnConfig.OnPgError = func(_ *pgconn.PgConn, err *pgconn.PgError) bool {
					mu.Lock()
					defer mu.Unlock()
					errs[err.Code]++
					return true
				}
				cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
					_, err := conn.Exec(ctx, `set role `+role)
					return err
				}
			}})
			b.run(ctx, t, `create role `+role+`; grant usage on schema shard_00001 to `+role+`; grant select on shard_00001.photos to `+role)
			t.Cleanup(func() { b.run(context.WithoutCancel(ctx), t, `drop owned by `+role+`; drop role `+role) })
			s := b.shard(t, 1)
			const other = `select $1::int8`
			familiar(ctx, t, s, c.sql, c.good)
			familiar(ctx, t, s, other, 1)
			if c.spoil != "" {
				b.run(ctx, t, strings.ReplaceAll(c.spoil, "from app", "from "+role))
			}
			mu.Lock()
			clear(errs)
			mu.Unlock()
			late, failed := b.Router.Late(), 0
			for range 5 {
				letGo := hold(ctx, t, s)
				var wait sync.WaitGroup
				for i := range 8 {
					wait.Go(func() {
						if i == 3 {
							if err := isSQLState(s.QueryRow(ctx, c.sql, c.bad).Scan(new(int)), c.state); err != nil {
								t.Error(err)
							}
							return
						}
						if err := s.QueryRow(ctx, other, i).Scan(new(int64)); err != nil {
							t.Error(err)
						}
					})
					b.waits(ctx, t, i+1)
				}
				letGo()
				wait.Wait()
				failed++
			}
			if _, err := s.Exec(ctx, c.sql, c.bad); isSQLState(err, c.state) != nil {
				t.Error(err)
			}
			failed++
			mu.Lock()
			defer mu.Unlock()
			// On a machine that stalls a read may be late, and is sent twice for that.
			late = b.Router.Late() - late
			if got := errs[c.state]; got < failed || got > failed+int(late) {
				t.Errorf("%d calls failed, %d reads were late, and the server sent %d errors", failed, late, got)
			}
		})
	}
}

// Long texts are not kept.
func TestLongTextsAreNotKept(t *testing.T) {
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := used()
	for i := range 20 {
		text := fmt.Sprintf(`select $1::int8 /* %d %s */`, i, strings.Repeat("x", 1<<19))
		for range 2 {
			var got int64
			if err := s.QueryRow(ctx, text, i).Scan(&got); err != nil || got != int64(i) {
				t.Fatal(got, err)
			}
			if _, err := s.Exec(ctx, text, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if kept := int64(used()) - int64(before); kept > 4<<20 {
		t.Errorf("%d MiB are kept", kept>>20)
	}
	var onServer int
	if err := s.QueryRow(ctx, `select count(*) from pg_prepared_statements where length(statement) > 100000`).Scan(&onServer); err != nil || onServer != 0 {
		t.Errorf("the server keeps %d, %v", onServer, err)
	}
}

// COPY encodes for the columns as they are, not as they were the last time.
func TestCopyAfterAChange(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	b.run(ctx, t, `create table shard_00001.numbers (n int)`)
	add := func() {
		t.Helper()
		if _, err := s.CopyFrom(ctx, pgx.Identifier{"numbers"}, []string{"n"}, pgx.CopyFromRows([][]any{{42}})); err != nil {
			t.Error(err)
		}
	}
	add()
	b.run(ctx, t, `alter table shard_00001.numbers alter n type real`)
	add()
	if got := ask(ctx, t, s, `select string_agg(distinct n::text, ' ') from numbers`); got != "42" {
		t.Errorf("got %s", got)
	}
}

// A panic while an argument is encoded is an error of that call, and its connection goes on.
func TestPanicWhileEncoding(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	for range 3 {
		var batch pgx.Batch
		batch.Queue(`select $1::text`, panics{})
		for how, err := range map[string]error{
			"query": s.QueryRow(ctx, `select $1::text`, panics{}).Scan(new(any)),
			"exec":  second(s.Exec(ctx, `select $1::text`, panics{})),
			"batch": s.SendBatch(ctx, &batch).Close(),
			"tx":    s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return second(tx.Exec(ctx, `select $1::text`, panics{})) }),
		} {
			if err == nil || !strings.Contains(err.Error(), "panic while the arguments were encoded") {
				t.Errorf("%s: got %v", how, err)
			}
		}
	}
	b.isFree(ctx, t)
}

// A read that turns out to write, in whichever row, is run again as a write.
func TestViewThatWrites(t *testing.T) {
	t.Parallel()
	for _, mode := range modes {
		b, ctx := setup(t, options{conns: 1, dsn: execMode(mode)})
		b.run(ctx, t, `create function public.seen() returns int language plpgsql as $$ begin update photos set title = 'seen'; return 1; end $$;
create view shard_00001.first as select public.seen() as n;
create view shard_00001.second as select 1 as n union all select public.seen()`)
		for _, view := range []string{"first", "second"} {
			rows, err := b.shard(t, 1).Query(ctx, `select n from `+view)
			if err == nil {
				_, err = pgx.CollectRows(rows, pgx.RowTo[int])
			}
			if err != nil {
				t.Errorf("%s, %s: %v", mode, view, err)
			}
		}
	}
}
