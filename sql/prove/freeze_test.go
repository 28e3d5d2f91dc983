package prove_test

import (
	"context"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// TestFrozenSessions freezes backends in mid-call with SIGSTOP, as a busy or swapping host does, and wakes them.
func TestFrozenSessions(t *testing.T) {
	t.Parallel()
	frozenSessions(t, chosen, form(4, 8), form(200*time.Millisecond, time.Second)).check(t)
}

func frozenSessions(t *testing.T, s subject, rounds int, length time.Duration) *history {
	t.Helper()
	const sessions = 200
	server := start(t, s, localpg.Config{})
	h := newHistory(newClock(), limitsFor(sessions))
	l := startLoad(t, h, loadConfig{dsn: targetOn(server).dsn, sessions: sessions, bulk: 500})
	var all frozen
	t.Cleanup(func() { all.wake() })
	midCall, locks := 0, 0
	for n := range rounds {
		loadFor(t, form(300*time.Millisecond, time.Second))
		l.fault("freeze %d", n+1)
		var some frozen
		some.add(l, sessions/10)
		loadFor(t, untilBeat()+time.Duration(rand.Int64N(int64(3*time.Millisecond))))
		some.add(l, sessions/10) // now sessions of the idle shards are in catch_up
		all = append(all, some...)
		locks += some.locks(t, server)
		loadFor(t, length)
		midCall += some.wake()
	}
	loadFor(t, form(300*time.Millisecond, time.Second))
	l.stop()
	t.Logf("%d sessions were frozen, %d of them in mid-call; %d locks of the engine were held meanwhile", len(all), midCall, locks)
	if midCall == 0 {
		t.Error("no session was frozen in mid-call, so the test proves nothing")
	}
	return h
}

// frozen are workers whose backends were stopped.
type frozen []stopped

type stopped struct {
	*worker
	pid  int
	call int64 // which call was under way
}

// add stops the backends of some of the workers that have a call under way.
func (f *frozen) add(l *load, most int) {
	workers := l.calling()
	rand.Shuffle(len(workers), func(i, j int) { workers[i], workers[j] = workers[j], workers[i] })
	for _, w := range workers[:min(most, len(workers))] {
		conn, call := w.conn.Load(), w.busy.Load()
		if conn == nil || call == 0 {
			continue
		}
		pid := int(conn.PgConn().PID())
		if syscall.Kill(pid, syscall.SIGSTOP) == nil {
			*f = append(*f, stopped{w, pid, call})
		}
	}
}

// wake lets the backends go on, and returns how many of them had not finished the call that they were stopped in.
func (f frozen) wake() (midCall int) {
	for _, s := range f {
		if s.busy.Load() == s.call {
			midCall++
		}
		_ = syscall.Kill(s.pid, syscall.SIGCONT) // at the end of a failed test it may be gone
	}
	return midCall
}

// locks returns how many of the engine's locks the frozen sessions hold. The query may itself have to wait for one of
// them, inside the server where no timeout reaches it, so it is given up soon.
func (f frozen) locks(t *testing.T, server *localpg.Server) int {
	t.Helper()
	var pids []int32
	for _, s := range f {
		pids = append(pids, int32(s.pid))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.DSN("postgres")) // whose names of tables are others, so it goes by the mode
	if err != nil {
		return 0
	}
	defer conn.Close(ctx)
	query := "select count(*) from pg_locks where locktype = 'relation' and granted and mode = 'ShareUpdateExclusiveLock' and pid = any($1)"
	var count int
	if err := conn.QueryRow(ctx, query, pids).Scan(&count); err != nil {
		return 0
	}
	return count
}
