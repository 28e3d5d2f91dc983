package sql_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

func TestNextID(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var last shards.ID
	for range 20 {
		before := time.Now()
		id := one[shards.ID](t, b.conn, "select shard_00005.next_id()")
		checkNear(t, b.m, id, before, time.Now())
		if n, err := b.m.ForID(id); err != nil || n != 5 {
			t.Errorf("ID %d is of shard %d (%v), expected 5", id, n, err)
		}
		if id <= last {
			t.Errorf("ID %d after %d", id, last)
		}
		last = id
	}
}

func TestNextIDs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, n := range []int{0, 1, 2, 127, 128, 129, 5000} {
		before := time.Now()
		ids := several[shards.ID](t, b.conn, "select * from shard_00005.next_ids($1)", n)
		after := time.Now()
		if len(ids) != n {
			t.Errorf("next_ids(%d) gave %d IDs", n, len(ids))
		}
		if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
			t.Errorf("next_ids(%d): IDs do not rise", n)
		}
		for _, id := range ids {
			checkNear(t, b.m, id, before, after)
			if n := b.m.Layout().Parts(id).Shard; n != 5 {
				t.Fatalf("ID %d is of shard %d, expected 5", id, n)
			}
		}
	}
	refused(t, b.conn, "22023", "select shard_00005.next_ids(-1)")
}

func TestAnIdleShardKeepsItsLowBitsSpread(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var slots []int64
	for range 50 {
		id := one[shards.ID](t, b.conn, "select shard_00002.next_id() from (select pg_catalog.pg_sleep(0.015)) as idle")
		slots = append(slots, b.m.Layout().Parts(id).Sequence)
	}
	if slices.Sort(slots); len(slices.Compact(slots)) < 50 {
		t.Errorf("50 IDs of an idle shard have slots %v, expected 50 different ones", slots)
	}
}

// TestATableOfItsOwnSequence is Instagram's way: each table draws from a sequence of its own.
func TestATableOfItsOwnSequence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn,
		"create sequence shard_00001.photos_id_seq maxvalue 1125899906842623",
		"create table shard_00001.photos (id bigint primary key default shard_00001.next_id('shard_00001.photos_id_seq'), n int)")
	before := time.Now()
	ids := several[shards.ID](t, b.conn, "insert into shard_00001.photos (n) select generate_series(1, 3000) returning id")
	after := time.Now()
	if len(ids) != 3000 || !slices.IsSorted(ids) {
		t.Errorf("got %d IDs, sorted %t", len(ids), slices.IsSorted(ids))
	}
	checkNear(t, b.m, ids[0], before, after)
	checkNear(t, b.m, ids[2999], before, after)
}

func TestRefusesASequenceThatIsNotOurs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn,
		"create sequence shard_00001.plain_seq",
		"create sequence shard_00001.cached_seq maxvalue 1125899906842623 cache 10",
		"create sequence shard_00001.step_seq maxvalue 1125899906842623 increment 2",
		"create sequence shard_00001.cycle_seq maxvalue 1125899906842623 cycle",
		"create sequence public.elsewhere_seq maxvalue 1125899906842623")
	for _, seq := range []string{
		"shard_00001.plain_seq", "shard_00001.cached_seq", "shard_00001.step_seq", "shard_00001.cycle_seq",
		"public.elsewhere_seq", "shard_00002.next_id_seq",
	} {
		refused(t, b.conn, sql.Refused, "select shard_00001.next_id('"+seq+"')")
		if last := one[int64](t, b.conn, "select last_value from "+seq); last > 1000 {
			t.Errorf("%s was moved to %d anyway", seq, last)
		}
	}
}

// TestTheEndOfTime is year 34.8, when the sequence reaches its maximum: an error, and no negative ID.
func TestTheEndOfTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const last = 1<<50 - 1
	exec(t, b.conn, "select pg_catalog.setval('shard_00004.next_id_seq', 1125899906842622)")
	id := one[shards.ID](t, b.conn, "select shard_00004.next_id()")
	if want := shards.ID(last>>10<<23 | 4<<10 | last&1023); id != want {
		t.Errorf("the last ID is %d, expected %d", id, want)
	}
	refused(t, b.conn, "2200H", "select shard_00004.next_id()") // sequence_generator_limit_exceeded
	refused(t, b.conn, "2200H", "select shard_00004.next_ids(10)")
}

// TestTheClockIsPastTheLayout comes to the last milliseconds of a layout, and then past them.
func TestTheClockIsPastTheLayout(t *testing.T) {
	t.Parallel()
	m, err := shardtest.MapConfig(1, shardtest.Hosts(t, 1)).Map()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, m)
	p := params(m)
	p.End = time.Now().Add(2 * time.Second).Truncate(time.Millisecond).UTC()
	p.Epoch = p.End.Add(-(1 << 40) * time.Millisecond)
	engine, _ := sql.Engine(p)
	exec(t, conn, engine, sql.Shard(p, 0, "shard_00000"))
	for _, call := range []string{"next_id()", "next_ids(3)"} {
		for ended := false; !ended; {
			_, err := conn.Exec(t.Context(), "select shard_00000."+call+" from (select pg_catalog.pg_sleep(0.03)) as idle")
			var e *pgconn.PgError
			if errors.As(err, &e) && (e.Code != "2200H" || !strings.Contains(e.Message, "this layout has no IDs after")) {
				t.Fatalf("%s: got %v, expected to hear that the layout ends", call, err)
			}
			ended = err != nil
			if now := time.Now(); !ended && now.After(p.End.Add(time.Minute)) {
				t.Fatalf("%s at %s, after the layout's end at %s", call, now, p.End)
			}
		}
	}
}

// TestAheadOfTheClock is a sequence as a clock that stepped back leaves it.
func TestAheadOfTheClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	began := time.Now() // the lead shrinks from the moment when the last ID is drawn
	last := one[shards.ID](t, b.conn, "select shard_00006.next_id()")
	exec(t, b.conn, "select pg_catalog.setval('shard_00006.next_id_seq', pg_catalog.nextval('shard_00006.next_id_seq') + 500 * 1024)")
	lead := func(id shards.ID) time.Duration {
		return b.m.Time(id).Sub(one[time.Time](t, b.conn, "select clock_timestamp()"))
	}

	id := one[shards.ID](t, b.conn, "select shard_00006.next_id()")
	ahead, passed := lead(id), time.Since(began)
	if id <= last || ahead < 400*time.Millisecond-passed || ahead > time.Second {
		t.Errorf("ID %d after %d, %s ahead of the clock, expected about half a second", id, last, ahead)
	}
	ids := several[shards.ID](t, b.conn, "select shard_00006.next_ids(100)")
	if !slices.IsSorted(ids) || ids[0] <= id {
		t.Errorf("IDs ahead of the clock do not rise")
	}
	deadline := time.Now().Add(5 * time.Minute)
	for lead(id) > 20*time.Millisecond {
		next := one[shards.ID](t, b.conn, "select shard_00006.next_id()")
		if next <= id {
			t.Fatalf("ID %d after %d", next, id)
		}
		if id = next; time.Now().After(deadline) {
			t.Fatalf("the sequence is still %s ahead of the clock", lead(id))
		}
	}
}

// TestCopiedRowsStayUnique inserts by COPY, where the default makes each row's ID.
func TestCopiedRowsStayUnique(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn, "create table shard_00000.photos (id bigint primary key default shard_00000.next_id(), n int)")
	rows := make([][]any, 20_000)
	for i := range rows {
		rows[i] = []any{i}
	}
	before := time.Now()
	if _, err := b.conn.CopyFrom(t.Context(), pgx.Identifier{"shard_00000", "photos"}, []string{"n"}, pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	ids := several[shards.ID](t, b.conn, "select id from shard_00000.photos order by n")
	if len(ids) != len(rows) || !slices.IsSorted(ids) {
		t.Errorf("got %d IDs, sorted %t", len(ids), slices.IsSorted(ids))
	}
	checkNear(t, b.m, ids[len(ids)-1], before, time.Now())
}
