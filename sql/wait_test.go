package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

const (
	nullNotAllowed   = "22004"
	lockNotAvailable = "55P03"
	queryCanceled    = "57014"
)

// TestTheWrappersArePLpgSQL is the contract: a session plans a shard's next_id() once.
func TestTheWrappersArePLpgSQL(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]shards.Layout{"default": shards.DefaultLayout, "typed": typed, "without a time": pinterest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupLayout(t, layout)
			const query = `
				select p.oid::regprocedure::text || ' ' || l.lanname from pg_catalog.pg_proc p
				join pg_catalog.pg_language l on l.oid = p.prolang
				where p.pronamespace = 'shard_00001'::regnamespace and p.proname = 'next_id' and (l.lanname <> 'plpgsql' or p.provolatile <> 'v')`
			if others := several[string](t, b.conn, query); len(others) > 0 {
				t.Errorf("got %q, expected volatile PL/pgSQL", others)
			}
		})
	}
}

func TestNullIsRefused(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]shards.Layout{"default": shards.DefaultLayout, "typed": typed, "without a time": pinterest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupLayout(t, layout)
			calls := []string{"shard_00001.next_id(null::regclass)"}
			if layout.Type == 0 {
				calls = append(calls, "kiloshard.next_id(null, 'shard_00001.next_id_seq')", "kiloshard.next_id(1, null)")
			} else {
				calls = append(calls, "kiloshard.next_id(null, 'shard_00001.next_id_seq', 1)", "kiloshard.next_id(1, null, 1)",
					"kiloshard.next_id(1, 'shard_00001.next_id_seq', null)", "shard_00001.next_id('shard_00001.next_id_seq', null)")
			}
			for _, call := range calls {
				refused(t, b.conn, nullNotAllowed, "select "+call)
				refused(t, b.conn, nullNotAllowed, "select "+call+" from (select shard_00001.next_id()) as near")
			}
			if layout.Type == 0 {
				refused(t, b.conn, invalidParameter, "select kiloshard.next_id(-1, 'shard_00001.next_id_seq')")
			}
		})
	}
}

// TestACanceledCallDrawsNothing cancels calls that wait for a setter, and calls that sleep.
func TestACanceledCallDrawsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	last := func() int64 { return one[int64](t, b.conn, "select last_value from shard_00001.next_id_seq") }
	exec(t, b.conn, "select shard_00001.next_id()", "select pg_catalog.setval('shard_00001.next_id_seq', 1000)")
	holder := connect(t, b.m)
	holdSetters(t, holder, "shard_00001.next_id_seq")
	exec(t, b.conn, "set lock_timeout = 1")
	for range 20 {
		refused(t, b.conn, lockNotAvailable, "select shard_00001.next_id()")
		refused(t, b.conn, lockNotAvailable, "select shard_00001.next_ids(10)")
	}
	if now := last(); now != 1000 {
		t.Errorf("calls that waited for a setter drew %d values", now-1000)
	}
	exec(t, holder, "rollback")
	exec(t, b.conn, "reset lock_timeout", "select shard_00001.next_id()",
		"select pg_catalog.setval('shard_00001.next_id_seq', pg_catalog.nextval('shard_00001.next_id_seq') + 900 * 1024)")
	before := last()
	exec(t, b.conn, "set statement_timeout = 1")
	for range 5 { // each long before the clock has caught up
		refused(t, b.conn, queryCanceled, "select shard_00001.next_id()")
		refused(t, b.conn, queryCanceled, "select shard_00001.next_ids(10)")
	}
	exec(t, b.conn, "reset statement_timeout")
	if now := last(); now != before {
		t.Errorf("calls that slept drew %d values", now-before)
	}
}

// TestAWaitForASetterEnds has a setter that does not end. Calls that wait for it fail, and say which process that is.
func TestAWaitForASetterEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn, "select shard_00001.next_id()", "select pg_catalog.setval('shard_00001.next_id_seq', 1000)")
	holder := connect(t, b.m)
	holdSetters(t, holder, "shard_00001.next_id_seq")
	engine := one[string](t, b.conn, "select pg_catalog.pg_get_functiondef('kiloshard.catch_up_to_clock'::pg_catalog.regproc)")
	soon := strings.Replace(engine, "'30s'", "'1ms'", 1)
	if soon == engine {
		t.Fatal("catch_up_to_clock has no limit of 30 s")
	}
	exec(t, b.conn, soon, "set statement_timeout = '2min'")
	_, err := b.conn.Exec(t.Context(), "select shard_00001.next_id()")
	var pg *pgconn.PgError
	if process := fmt.Sprintf("process %d, role ", holder.PgConn().PID()); !errors.As(err, &pg) || pg.Code != lockNotAvailable || !strings.Contains(pg.Message, process) {
		t.Errorf("got %v, expected %q", err, process)
	}
	exec(t, holder, "rollback")
	exec(t, b.conn, "begin", engine, "select shard_00001.next_id()")
	if now := one[string](t, b.conn, "select pg_catalog.current_setting('lock_timeout')"); now != "0" {
		t.Errorf("lock_timeout is %s after a call that moved the sequence", now)
	}
}

// TestALeadShrinksAtAnyLoad has four times as many sessions as a millisecond has slots draw from a sequence that leads
// the clock: by more than load alone would bring about, and then by what load does.
func TestALeadShrinksAtAnyLoad(t *testing.T) {
	t.Parallel()
	const sessions = 32
	layout := shards.Layout{Time: 41, Shard: 13, Sequence: 3}
	b := setupLayout(t, layout)
	exec(t, b.conn, "select shard_00001.next_id()",
		"select pg_catalog.setval('shard_00001.next_id_seq', pg_catalog.nextval('shard_00001.next_id_seq') + 1300 * 8)")
	lead := func() time.Duration {
		return -one[time.Duration](t, b.conn, "select pg_catalog.clock_timestamp() - kiloshard.id_time((last_value >> 3) << 16) from shard_00001.next_id_seq")
	}
	if lead() < time.Second {
		t.Fatalf("the sequence leads by %s, so the test proves nothing", lead())
	}
	var conns [sessions]*pgx.Conn
	for i := range conns {
		conns[i] = connect(t, b.m)
	}
	var made [sessions]atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for i, conn := range conns {
		wg.Go(func() {
			for !stop.Load() {
				var n int64
				if err := conn.QueryRow(t.Context(), "select count(shard_00001.next_id()) from pg_catalog.generate_series(1, 20)").Scan(&n); err != nil {
					t.Error(err)
					return
				}
				made[i].Add(n)
			}
		})
	}
	enough := func() bool {
		for i := range made {
			if made[i].Load() < 100 {
				return false
			}
		}
		return true
	}
	const small = 200 * time.Millisecond // 32 sessions' values are 4 ms
	for deadline := time.Now().Add(time.Minute); lead() > small || !enough(); {
		if time.Now().After(deadline) {
			t.Fatalf("the sequence leads by %s", lead())
		}
	}
	for range 50 {
		if ahead := lead(); ahead > small {
			t.Fatalf("the sequence leads by %s again", ahead)
		}
	}
}
