package prove_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/sql"
)

// held counts the locks of the engine that sessions of this database hold or wait for.
const held = `select count(*) from pg_locks l join pg_class c on c.oid = l.relation
	where l.mode = 'ShareUpdateExclusiveLock' and c.relnamespace = to_regnamespace('kiloshard_locks') and c.relname like 'setter\_%'
	and l.database = (select oid from pg_database where datname = current_database())`

// TestCancelledCalls cancels statements and ends sessions at random, on idle shards for the most part, where calls are
// in catch_up. No lock of the engine stays behind, and in the full form no call takes longer than a second. It runs by
// itself, before the tests that run in parallel: they would add to the time that calls take.
func TestCancelledCalls(t *testing.T) {
	const sessions = 24
	server := start(t, chosen, localpg.Config{})
	conn := connect(t, server.DSN(database))
	h := newHistory(newClock(), limitsFor(sessions))
	l := startLoad(t, h, loadConfig{dsn: targetOn(server).dsn, sessions: sessions, bulk: 200, breaks: true})
	loadFor(t, time.Second/2)
	l.fault("the first of many calls that were cancelled")
	done := make(map[string]int)
	enough := func() bool { return chosen != kiloshard || l.inCatchUp.Load() >= 20 }
	length := form(2*time.Second, 12*time.Second)
	for began := time.Now(); time.Since(began) < length || !enough() && time.Since(began) < callLimit; {
		letGo := func() {}
		if rand.IntN(2) == 0 {
			if chosen == kiloshard {
				letGo = holdUp(t, conn)
			}
			loadFor(t, untilBeat())
		}
		for range 3 {
			loadFor(t, time.Duration(rand.Int64N(int64(3*time.Millisecond))))
			if w := l.aim(); w != nil {
				done[interrupt(t, conn, w)]++
			}
		}
		letGo()
	}
	loadFor(t, time.Second/2)
	l.stop()

	count := func() (n int) {
		if err := conn.QueryRow(t.Context(), held).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("%d locks of the engine are left behind", n)
	}
	if chosen == kiloshard {
		letGo := holdUp(t, conn)
		if count() != 1 {
			t.Error("a lock that is held does not show")
		}
		letGo()
	}
	t.Logf("done: %v; calls that the server ended: %d, of them in catch_up: %d", done, l.cut.Load(), l.inCatchUp.Load())
	if !enough() {
		t.Error("too few calls were ended in catch_up, so the test proves little")
	}
	// In the short form others take their share of the machine. A lock left behind would hold a call up for good.
	longest := form(callLimit, time.Second)
	if v := h.check(t); v.longest > longest {
		t.Errorf("a call took %v, expected no more than %v", v.longest, longest)
	}
}

// holdUp takes the lock of an idle shard's sequence, as a slow setter does: calls then wait in catch_up, where they are
// easy to hit. It lasts until letGo is called.
func holdUp(t *testing.T, conn *pgx.Conn) (letGo func()) {
	t.Helper()
	exec := func(query string) {
		if _, err := conn.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	var n int
	if err := conn.QueryRow(t.Context(), "select $1::regclass::oid::bigint % $2", schema(idle)+".next_id_seq", sql.Setters).Scan(&n); err != nil {
		t.Fatal(err)
	}
	exec(fmt.Sprintf("begin; lock table kiloshard_locks.setter_%d in share update exclusive mode", n))
	return func() { exec("rollback") }
}

// aim returns a worker that has a call under way, on an idle shard if there is one.
func (l *load) aim() *worker {
	var choice *worker
	for _, w := range l.calling() {
		onIdle := w.shard == idle || w.shard == another
		if choice == nil || onIdle && rand.IntN(2) == 0 {
			choice = w
		}
	}
	return choice
}

// interrupt does something to the call that a worker has under way, and returns what.
func interrupt(t *testing.T, conn *pgx.Conn, w *worker) string {
	t.Helper()
	victim := w.conn.Load()
	if victim == nil {
		return "nothing"
	}
	tell := func(function string) string {
		if _, err := conn.Exec(t.Context(), "select "+function+"($1)", victim.PgConn().PID()); err != nil {
			t.Errorf("%s: %v", function, err)
		}
		return function
	}
	switch rand.IntN(10) {
	case 0:
		return tell("pg_terminate_backend")
	case 1:
		(*w.cancel.Load())() // pgx then closes the connection
		return "context cancelled"
	case 2, 3, 4:
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = victim.PgConn().CancelRequest(ctx) // the session may be gone
		return "cancel request"
	default:
		return tell("pg_cancel_backend")
	}
}
