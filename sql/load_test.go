package sql_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// TestUnderLoad has 32 sessions on one shard make IDs in every way for 3 seconds, or until there are enough of them: each
// is given once, rises within its session, and is near the clock.
func TestUnderLoad(t *testing.T) {
	t.Parallel()
	const sessions, length, enough = 32, 3 * time.Second, 10_000
	b := setup(t)
	exec(t, b.conn, "create table shard_00007.photos (id bigint default shard_00007.next_id(), session int)")
	ways := []func(session int) (query string, args []any){
		func(session int) (string, []any) {
			return "insert into shard_00007.photos (session) values ($1) returning id", []any{session}
		},
		func(session int) (string, []any) {
			return "insert into shard_00007.photos (session) select $1 from generate_series(1, $2::int) returning id", []any{session, 1000 + rand.IntN(4000)}
		},
		func(int) (string, []any) { return "select shard_00007.next_id()", nil },
		func(int) (string, []any) { return "select shard_00007.next_ids($1)", []any{1 + rand.IntN(3000)} },
		func(int) (string, []any) { // the shard may fall idle for this one, when all sessions sleep
			return "select shard_00007.next_id() from (select pg_catalog.pg_sleep(0.05)) as idle", nil
		},
	}

	made := make([][]shards.ID, sessions)
	statements := make([]int, sessions)
	var conns [sessions]*pgx.Conn
	for session := range conns {
		conns[session] = connect(t, b.m)
	}
	stop := time.Now().Add(length)
	var count atomic.Int64
	var wg sync.WaitGroup
	for session, conn := range conns {
		wg.Go(func() {
			for (time.Now().Before(stop) || count.Load() < enough) && !t.Failed() {
				query, args := ways[rand.IntN(len(ways))](session)
				before := time.Now()
				ids, err := makeIDs(t.Context(), conn, query, args)
				after := time.Now()
				if err != nil {
					t.Error(err)
					return
				}
				checkNear(t, b.m, ids[0], before, after)
				checkNear(t, b.m, ids[len(ids)-1], before, after)
				made[session] = append(made[session], ids...)
				count.Add(int64(len(ids)))
				statements[session]++
			}
		})
	}
	wg.Wait()

	var all []shards.ID
	for session, ids := range made {
		for i := 1; i < len(ids); i++ {
			if ids[i] <= ids[i-1] {
				t.Fatalf("session %d was given ID %d after %d", session, ids[i], ids[i-1])
			}
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			t.Errorf("ID %d was given twice", all[i])
		}
	}
	t.Logf("%d IDs by %d statements", len(all), sum(statements))
}

func makeIDs(ctx context.Context, conn *pgx.Conn, query string, args []any) ([]shards.ID, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[shards.ID])
}

func sum(numbers []int) int {
	total := 0
	for _, n := range numbers {
		total += n
	}
	return total
}

// TestACancelledCallKeepsNoLock cancels calls that wait for the lock of an idle shard.
func TestACancelledCallKeepsNoLock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	holder := connect(t, b.m)
	holdSetters(t, holder, "shard_00001.next_id_seq")
	for range 3 {
		var call sync.WaitGroup
		call.Go(func() { refused(t, b.conn, queryCanceled, "select shard_00001.next_id()") })
		const cancel = `select pg_catalog.pg_cancel_backend(pid) from pg_catalog.pg_locks where locktype = 'relation' and not granted and pid = $1`
		for len(several[bool](t, holder, cancel, int32(b.conn.PgConn().PID()))) == 0 && !t.Failed() { // it does not wait yet
		}
		call.Wait()
	}
	exec(t, holder, "rollback")

	// The same inside a transaction that goes on after the statement failed.
	exec(t, b.conn, "begin", "savepoint s")
	before := time.Now()
	checkNear(t, b.m, one[shards.ID](t, b.conn, "select shard_00001.next_id()"), before, time.Now())
	const held = `select count(*) from pg_catalog.pg_locks where mode = 'ShareUpdateExclusiveLock'
		and database = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())`
	if n := one[int](t, holder, held); n != 0 {
		t.Errorf("%d locks are held after the calls", n)
	}
	exec(t, b.conn, "select shard_00001.next_ids(1000)")
	if n := one[int](t, holder, held); n != 0 {
		t.Errorf("%d locks are held after next_ids", n)
	}
	exec(t, b.conn, "rollback")
}
