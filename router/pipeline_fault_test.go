package router_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
)

// hold occupies the one connection of a host until let go, so that what is asked meanwhile waits and is sent together.
func hold(ctx context.Context, t *testing.T, s router.Shard) (letGo func()) {
	t.Helper()
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
	}
}

// waits waits until a number of calls wait for a connection.
func (b *testBundle) waits(ctx context.Context, t *testing.T, calls int) {
	t.Helper()
	eventually(ctx, t, func() bool { return b.Stats()[0].Waiting >= calls })
}

func eventually(ctx context.Context, t *testing.T, what func() bool) {
	t.Helper()
	for !what() {
		select {
		case <-ctx.Done():
			t.Fatal("it never came")
		case <-time.After(time.Millisecond):
		}
	}
}

// familiar has a router get to know a statement: until it is known to be quick it goes by itself.
func familiar(ctx context.Context, t *testing.T, s router.Shard, sql string, args ...any) {
	t.Helper()
	for s.Slow(sql) {
		rows, err := s.Query(ctx, sql, args...)
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

const echo = `select owner, $1::int8 from photos where id = 1`

// together asks for n echoes that are sent together, with something in their midst.
func (b *testBundle) together(ctx context.Context, t *testing.T, n int, midst func()) {
	t.Helper()
	for range 5 {
		if b.tryTogether(ctx, t, n, midst) {
			return
		}
		time.Sleep(time.Second) // a text that was late is sent alone for that long
	}
	t.Error("nothing was sent together, so that the test proves nothing")
}

// tryTogether reports whether anything was sent together.
func (b *testBundle) tryTogether(ctx context.Context, t *testing.T, n int, midst func()) bool {
	t.Helper()
	s := b.shard(t, 1)
	familiar(ctx, t, s, echo, 1)
	letGo := hold(ctx, t, s)
	var wait sync.WaitGroup
	for i := range n {
		if i == n/2 && midst != nil {
			wait.Go(midst)
			b.waits(ctx, t, i+1)
		}
		wait.Go(func() {
			var owner, got int64
			err := s.QueryRow(ctx, echo, i).Scan(&owner, &got)
			if err = same3(err, owner, 1, got, int64(i)); err != nil {
				t.Error(err)
			}
		})
		if midst != nil {
			b.waits(ctx, t, i+1)
		}
	}
	b.waits(ctx, t, n)
	before := b.Stats()[0].Batched
	letGo()
	wait.Wait()
	sent := b.Stats()[0].Batched > before
	b.isFree(ctx, t)
	return sent
}

func TestErrorInABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select 1 / $1::int`
	familiar(ctx, t, s, sql, 1)
	b.together(ctx, t, 10, func() {
		if err := isSQLState(s.QueryRow(ctx, sql, 0).Scan(nil), "22012"); err != nil {
			t.Error(err)
		}
	})
}

// TestEmptyTextInABatch has an answer that has no bytes at all, and is not null.
func TestEmptyTextInABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select $1::text, null::text`
	familiar(ctx, t, s, sql, "")
	b.together(ctx, t, 10, func() {
		var text, none *string
		if err := s.QueryRow(ctx, sql, "").Scan(&text, &none); err != nil || text == nil || *text != "" || none != nil {
			t.Errorf("got %v and %v, %v", text, none, err)
		}
	})
}

type panics struct{}

var errPanic = errors.New("a panic of the caller's")

func (panics) Value() (driver.Value, error) { panic(errPanic) }

// TestPanicInABatch has the panic of a caller's code be an error of that caller, whoever encodes its arguments.
func TestPanicInABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select $1::text`
	familiar(ctx, t, s, sql, "x")
	b.together(ctx, t, 10, func() {
		if err := s.QueryRow(ctx, sql, panics{}).Scan(nil); err == nil || !strings.Contains(err.Error(), errPanic.Error()) {
			t.Errorf("got %v", err)
		}
	})
}

// TestLongAnswerInABatch has answers too long to be kept, while others wait behind them.
func TestLongAnswerInABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select i, repeat('x', 1000) from generate_series(1, $1) i`
	familiar(ctx, t, s, sql, 10)
	for _, take := range []int{5, 5 * router.LongAnswer / 1000} {
		b.together(ctx, t, 10, func() {
			rows, err := s.Query(ctx, sql, 5*router.LongAnswer/1000)
			if err != nil {
				t.Error(err)
				return
			}
			n := 0
			for n < take && rows.Next() {
				n++
				var got int
				var text string
				if err := rows.Scan(&got, &text); err != nil || got != n || len(text) != 1000 {
					t.Errorf("row %d: %d, %d bytes, %v", n, got, len(text), err)
					break
				}
			}
			rows.Close()
			if n != take || rows.Err() != nil {
				t.Errorf("%d rows, %v", n, rows.Err())
			}
		})
	}
}

// holdLock takes the advisory lock 2 on a session of its own, for statements to wait for.
func (b *testBundle) holdLock(ctx context.Context, t *testing.T) *pgxpool.Conn {
	t.Helper()
	lock, err := b.plain.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(ctx, `select pg_advisory_lock(2)`); err != nil {
		lock.Release()
		t.Fatal(err)
	}
	return lock
}

// TestCallerLeavesABatch has a caller leave while the server is at work for it, and others wait behind it.
func TestCallerLeavesABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select pg_advisory_xact_lock($1)`
	familiar(ctx, t, s, sql, 1)
	lock := b.holdLock(ctx, t)
	defer lock.Release()
	short, leave := context.WithCancel(ctx)
	left := make(chan struct{})
	var unlocked sync.WaitGroup
	defer unlocked.Wait()
	b.together(ctx, t, 10, func() {
		unlocked.Go(func() {
			eventually(ctx, t, func() bool { // until the server waits for the lock
				var waiting bool
				err := lock.QueryRow(ctx, `select exists (select from pg_locks where locktype = 'advisory' and objid = 2 and not granted)`).Scan(&waiting)
				return err != nil || waiting
			})
			leave()
			select { // an answer could come before the end of the context is seen
			case <-left:
			case <-ctx.Done():
			}
			if _, err := lock.Exec(ctx, `select pg_advisory_unlock(2)`); err != nil {
				t.Error(err)
			}
		})
		defer close(left)
		if err := s.QueryRow(short, sql, 2).Scan(nil); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestAllCallersLeaveABatch has the server stop working for nobody.
func TestAllCallersLeaveABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select pg_advisory_xact_lock($1)`
	familiar(ctx, t, s, sql, 1)
	lock := b.holdLock(ctx, t)
	defer lock.Release()
	short, leave := context.WithCancel(ctx)
	defer leave()
	letGo := hold(ctx, t, s)
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			if err := s.QueryRow(short, sql, 2).Scan(nil); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
	b.waits(ctx, t, 5)
	letGo()
	const blocked = `select count(*) from pg_locks where locktype = 'advisory' and objid = 2 and not granted`
	count := func() (n int) {
		if err := lock.QueryRow(ctx, blocked).Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	eventually(ctx, t, func() bool { return count() > 0 })
	leave()
	wait.Wait()
	eventually(ctx, t, func() bool { return count() == 0 })
	b.isFree(ctx, t)
}

// TestSlowStatement has the calls behind a statement that does not get on find other connections.
func TestSlowStatement(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 2})
	s := b.shard(t, 1)
	const sql = `select pg_advisory_xact_lock($1)`
	familiar(ctx, t, s, sql, 1)
	familiar(ctx, t, s, echo, 1)
	lock := b.holdLock(ctx, t)
	defer lock.Release()
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := s.QueryRow(ctx, sql, 2).Scan(nil); err != nil {
			t.Error(err)
		}
	})
	eventually(ctx, t, func() bool {
		var waiting bool
		err := lock.QueryRow(ctx, `select exists (select from pg_locks where locktype = 'advisory' and objid = 2 and not granted)`).Scan(&waiting)
		return err != nil || waiting
	})
	var fast sync.WaitGroup
	for w := range 20 {
		fast.Go(func() {
			for i := range 20 {
				var owner, got int64
				err := s.QueryRow(ctx, echo, w*100+i).Scan(&owner, &got)
				if err = same3(err, owner, 1, got, int64(w*100+i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	fast.Wait() // while the slow one is still held up
	if _, err := lock.Exec(ctx, `select pg_advisory_unlock(2)`); err != nil {
		t.Error(err)
	}
	wait.Wait()
}

// TestTableChangesUnderABatch has prepared statements become invalid, which no caller sees.
func TestTableChangesUnderABatch(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 1)
	const sql = `select p.*, $1::int8 as mine from photos p where id = 1`
	familiar(ctx, t, s, sql, 1)
	for i := range 3 {
		b.run(ctx, t, fmt.Sprintf(`alter table shard_00001.photos add column extra_%d int default %[1]d`, i))
		b.together(ctx, t, 6, func() {
			rows, err := s.Query(ctx, sql, 4711)
			if err != nil {
				t.Error(err)
				return
			}
			all, err := pgx.CollectRows(rows, pgx.RowToMap)
			if err != nil || len(all) != 1 || all[0][fmt.Sprintf("extra_%d", i)] != int32(i) || all[0]["mine"] != int64(4711) {
				t.Errorf("got %v, %v", all, err)
			}
		})
	}
}

// TestConnectionsAreReplaced has no connection work for more shards than it may.
func TestConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.LimitHomes(10)
	pids := map[string]int{}
	for n := range shardCount {
		pids[ask(ctx, t, b.shard(t, n), `select pg_backend_pid()::text`)]++
	}
	for pid, shards := range pids {
		if shards > 11 {
			t.Errorf("session %s worked for %d shards", pid, shards)
		}
	}
	if len(pids) < shardCount/11 {
		t.Errorf("%d sessions", len(pids))
	}
}
