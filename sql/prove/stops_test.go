package prove_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// stopClass is the first key of the locks at which sessions stand still. It spells "stop".
const stopClass = 0x73746F70

// interposed are the functions that a script calls by stops.sql instead: all of them where the clock stands still, else
// the clock alone.
var (
	interposed      = regexp.MustCompile(`(?:pg_catalog\.)?\b(clock_timestamp|nextval|setval|pg_sequence_last_value|pg_sleep)\(`)
	interposedClock = regexp.MustCompile(`(?:pg_catalog\.)?\b(clock_timestamp)\(`)
)

// takeLock is how a setter takes its lock.
const takeLock = "EXECUTE 'LOCK TABLE ' || setter || ' IN SHARE UPDATE EXCLUSIVE MODE';"

// withStops has a script call what stops.sql makes, which comes before it.
func withStops(t *testing.T, still bool, script string) string {
	t.Helper()
	var b strings.Builder
	if err := otherShards.ExecuteTemplate(&b, "stops.sql", struct {
		Still bool
		Class int
	}{still, stopClass}); err != nil {
		t.Fatal(err)
	}
	pattern := interposedClock
	if still {
		pattern = interposed
	}
	script = pattern.ReplaceAllString(script, "stops.$1(")
	if still {
		script = strings.Replace(script, takeLock, "PERFORM stops.at('lock'); "+takeLock, 1)
	}
	return b.String() + script
}

// stage is a database with one shard, whose sessions stand still where the test says. Its layout has so few slots that
// some sessions draw more values than the window has.
type stage struct {
	t       *testing.T
	dsn     string
	control *pgx.Conn
	clock   time.Duration
	given   []shards.ID
	actors  []*actor
}

const (
	stageSlots  = 2                                              // a millisecond
	stageWindow = 15 * time.Millisecond                          // behind the clock
	stageMargin = (100 + 8 + 10) * time.Millisecond / stageSlots // a value for each process of the server
	stageShard  = "shard_00000"                                  // the only one
	stageFar    = 80 * time.Millisecond                          // behind by more than window and margin
)

// newStage makes a database of the engine after a change of its script.
func newStage(t *testing.T, dsn string, change func(script string) string) *stage {
	t.Helper()
	l := shards.Layout{Time: 41, Shard: 13, Sequence: 1}
	p := sql.Params{
		Cluster: "stage", SchemaPrefix: "shard_", Epoch: epoch, End: l.End(epoch),
		TimeBits: l.TimeBits(), ShardBits: l.Shard, SequenceBits: l.Sequence,
	}
	script, _ := sql.Engine(p)
	do(t, dsn, withStops(t, true, change(script)+sql.Shard(p, 0, stageShard)))
	s := &stage{t: t, dsn: dsn, control: connect(t, dsn)}
	s.exec("select " + stageShard + ".next_id()") // near the clock
	return s
}

func (s *stage) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.control.Exec(s.t.Context(), query, args...); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

// goOn moves the clock, ahead or back.
func (s *stage) goOn(by time.Duration) {
	s.t.Helper()
	s.clock += by
	s.exec("select setval('stops.clock', $1)", s.clock.Microseconds())
}

// actor is one session, and the call that it has under way.
type actor struct {
	*stage
	conn *pgx.Conn
	pid  uint32
	done chan error
	ids  []shards.ID
	over bool

	hasty bool // its calls end when they have to wait for a lock
}

// actor opens a session that will stand still at the given points, such as "setval 1", its first setval.
func (s *stage) actor(points ...string) *actor {
	s.t.Helper()
	conn := connect(s.t, s.dsn)
	a := &actor{stage: s, conn: conn, pid: conn.PgConn().PID()}
	for _, point := range points {
		s.exec("select pg_advisory_lock($1, stops.key($2, $3))", stopClass, a.pid, point)
	}
	if len(points) > 0 {
		if _, err := conn.Exec(s.t.Context(), "set stops.here = 'yes'"); err != nil {
			s.t.Fatal(err)
		}
	}
	s.actors = append(s.actors, a)
	return a
}

// calls has the session call a function of the shard, and waits until it stands still, waits for a lock, or is done.
func (a *actor) calls(function string) *actor {
	a.t.Helper()
	a.done, a.over, a.ids = make(chan error, 1), false, nil
	go func() {
		rows, err := a.conn.Query(a.t.Context(), "select "+stageShard+"."+function)
		if err == nil {
			a.ids, err = pgx.CollectRows(rows, pgx.RowTo[shards.ID])
		}
		a.done <- err
	}()
	a.settle()
	return a
}

// settle waits until the session stands still, waits for a lock of the engine, or is done, which it reports.
func (a *actor) settle() (done bool) {
	a.t.Helper()
	eventually(a.t, "the session stands still or is done", func() bool {
		select {
		case err := <-a.done:
			var e *pgconn.PgError
			if err != nil && (!errors.As(err, &e) || e.Code != "55P03") { // lock_not_available
				a.t.Error(err)
			}
			a.over = true
			a.given = append(a.given, a.ids...)
			return true
		default:
			return a.waitsFor(aStop) || !a.hasty && a.waitsFor(aSetter)
		}
	})
	return a.over
}

// The locks that a session waits for: at one of its points, or for a setter.
var (
	aStop   = fmt.Sprintf("locktype = 'advisory' and classid::bigint = %d", stopClass)
	aSetter = "locktype = 'relation'"
)

// waitsFor tells whether the session waits for such a lock.
func (a *actor) waitsFor(lock string) (waits bool) {
	a.t.Helper()
	query := "select exists (select from pg_locks where " + lock + " and not granted and pid = $1)"
	if err := a.control.QueryRow(a.t.Context(), query, int64(a.pid)).Scan(&waits); err != nil {
		a.t.Fatal(err)
	}
	return waits
}

// standsStill tells whether it stands at one of its points.
func (a *actor) standsStill() bool { return !a.over && a.waitsFor(aStop) }

// lets go on from a point, and waits as calls does.
func (a *actor) letGo(point string) {
	a.t.Helper()
	a.exec("select pg_advisory_unlock($1, stops.key($2, $3))", stopClass, a.pid, point)
	if !a.over {
		a.settle()
	}
}

// end lets all sessions go and has one more draw: a sequence that was put back shows itself then. It returns the IDs that
// were given more than once.
func (s *stage) end(more int) []shards.ID {
	s.t.Helper()
	s.exec("select pg_advisory_unlock_all()")
	for _, a := range s.actors {
		for a.done != nil && !a.over {
			a.settle()
		}
	}
	// The clock goes to where the sequence is, so that nothing but nextval moves it.
	const toTheSequence = `select (last_value / $1 - extract(epoch from timestamptz '2026-06-01Z' - $2) * 1000)::bigint from ` + stageShard + `.next_id_seq`
	var milliseconds int64
	if err := s.control.QueryRow(s.t.Context(), toTheSequence, stageSlots, epoch).Scan(&milliseconds); err != nil {
		s.t.Fatal(err)
	}
	s.goOn(time.Duration(milliseconds)*time.Millisecond - s.clock)
	for last := s.actor(); more > 0; more -= 10 {
		last.calls("next_id() from generate_series(1, 10)")
		s.goOn(5 * time.Millisecond)
	}
	return repeated(slices.Clone(s.given))
}

// cancelable has the session's calls end when they have to wait for a lock.
func (a *actor) cancelable() *actor {
	a.t.Helper()
	a.hasty = true
	if _, err := a.conn.Exec(context.WithoutCancel(a.t.Context()), "set lock_timeout = 1"); err != nil {
		a.t.Fatal(err)
	}
	return a
}
