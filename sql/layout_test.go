package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

var (
	pinterest = shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	typed     = shards.Layout{Time: 41, Shard: 10, Type: 4, Sequence: 8}
)

const invalidParameter = "22023"

// TestPinterest makes IDs as Pinterest did: a sequence and a type for each table.
func TestPinterest(t *testing.T) {
	t.Parallel()
	b := setupLayout(t, pinterest)
	exec(t, b.conn,
		"create sequence shard_00005.pins_id_seq maxvalue 68719476735",
		"create sequence shard_00005.boards_id_seq maxvalue 68719476735",
		"create table shard_00005.pins (id bigint primary key default shard_00005.next_id('shard_00005.pins_id_seq', 1), n int)",
		"create table shard_00005.boards (id bigint primary key default shard_00005.next_id('shard_00005.boards_id_seq', 1023), n int)")
	for table, typ := range map[string]int{"pins": 1, "boards": 1023} {
		ids := several[shards.ID](t, b.conn, "insert into shard_00005."+table+" (n) select generate_series(1, 300) returning id")
		for i, id := range ids {
			if parts, want := pinterest.Parts(id), (shards.Parts{Shard: 5, Type: typ, Sequence: int64(i) + 1}); parts != want {
				t.Fatalf("%s: ID %d has %+v, expected %+v", table, id, parts, want)
			}
		}
	}
	ids := several[shards.ID](t, b.conn, "select shard_00005.next_ids(200)")
	if len(ids) != 200 || !slices.IsSorted(ids) || pinterest.Parts(ids[199]) != (shards.Parts{Shard: 5, Sequence: 200}) {
		t.Errorf("next_ids(200) gave %d IDs up to %+v", len(ids), pinterest.Parts(ids[len(ids)-1]))
	}
	refused(t, b.conn, invalidParameter, "select shard_00005.next_ids(-1)")
	if functions := several[string](t, b.conn, "select proname::text from pg_proc where pronamespace = 'kiloshard'::regnamespace order by 1"); !slices.Equal(functions,
		[]string{"id_floor", "id_sequence", "id_shard", "id_time", "id_type", "next_id", "next_ids", "note_command"}) {
		t.Errorf("the helper schema has %s", functions)
	}
}

// TestASequenceWithoutATimeEnds: an ID never runs over into the field above.
func TestASequenceWithoutATimeEnds(t *testing.T) {
	t.Parallel()
	b := setupLayout(t, pinterest)
	exec(t, b.conn, "select pg_catalog.setval('shard_00004.next_id_seq', 68719476734)")
	id := one[shards.ID](t, b.conn, "select shard_00004.next_id()")
	if want := (shards.Parts{Shard: 4, Sequence: 68719476735}); pinterest.Parts(id) != want {
		t.Errorf("the last ID has %+v, expected %+v", pinterest.Parts(id), want)
	}
	refused(t, b.conn, "2200H", "select shard_00004.next_id()") // sequence_generator_limit_exceeded

	exec(t, b.conn,
		"create sequence shard_00004.wide_seq", "select pg_catalog.setval('shard_00004.wide_seq', 68719476735)",
		"create sequence shard_00004.below_seq minvalue -1 start -1")
	refused(t, b.conn, sql.Refused, "select shard_00004.next_id('shard_00004.wide_seq', 1)")
	refused(t, b.conn, sql.Refused, "select shard_00004.next_id('shard_00004.below_seq', 1)")
}

// TestTypedWithTime has a type between the shard and the slot, and keeps to the clock.
func TestTypedWithTime(t *testing.T) {
	t.Parallel()
	b := setupLayout(t, typed)
	exec(t, b.conn,
		"create sequence shard_00003.pins_id_seq maxvalue 562949953421311",
		"create table shard_00003.pins (id bigint primary key default shard_00003.next_id('shard_00003.pins_id_seq', 15), n int)")
	before := time.Now()
	ids := several[shards.ID](t, b.conn, "insert into shard_00003.pins (n) select generate_series(1, 1000) returning id")
	after := time.Now()
	if len(ids) != 1000 || !slices.IsSorted(ids) {
		t.Errorf("got %d IDs, sorted %t", len(ids), slices.IsSorted(ids))
	}
	for _, id := range ids {
		if parts := typed.Parts(id); parts.Shard != 3 || parts.Type != 15 {
			t.Fatalf("ID %d has %+v, expected shard 3 and type 15", id, parts)
		}
		checkNear(t, b.m, id, before, after)
	}
	plan := strings.Join(several[string](t, b.conn, "explain verbose select kiloshard.next_id(3, 'shard_00003.pins_id_seq', 15)"), "\n")
	if !strings.Contains(plan, "abs(((pg_sequence_last_value('shard_00003.pins_id_seq'::regclass))::double precision - ") || strings.Contains(plan, "15 <=") {
		t.Errorf("expected the engine in line and no comparison of constants, got\n%s", plan)
	}
	ids = several[shards.ID](t, b.conn, "select shard_00003.next_ids(500)")
	if len(ids) != 500 || !slices.IsSorted(ids) || typed.Parts(ids[0]).Type != 0 {
		t.Errorf("next_ids(500) gave %d IDs from %+v, sorted %t", len(ids), typed.Parts(ids[0]), slices.IsSorted(ids))
	}
}

func TestATypeOutOfRange(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]shards.Layout{"with a time": typed, "without": pinterest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupLayout(t, layout)
			for _, typ := range []int{-1, layout.MaxTypes(), 1 << 30} {
				_, err := b.conn.Exec(t.Context(), "select shard_00001.next_id('shard_00001.next_id_seq', $1)", typ)
				var e *pgconn.PgError
				if !errors.As(err, &e) || e.Code != invalidParameter || e.Message != fmt.Sprintf("type %d: expected 0 to %d", typ, layout.MaxTypes()-1) {
					t.Errorf("type %d: got %v", typ, err)
				}
			}
		})
	}
}

// TestWithoutTypesThereIsNothingNew in a shard.
func TestWithoutTypesThereIsNothingNew(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const query = `
		select p.oid::regprocedure::text from pg_catalog.pg_proc p
		where p.pronamespace in ('shard_00001'::regnamespace, 'kiloshard'::regnamespace) and p.proname in ('next_id', 'id_type')
		order by 1`
	got := several[string](t, b.conn, query)
	want := []string{"kiloshard.next_id(integer,regclass)", "shard_00001.next_id()", "shard_00001.next_id(regclass)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestHostileSearchPathOfOtherLayouts(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]shards.Layout{"with a time": typed, "without": pinterest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			victim := setupLayout(t, layout).evil(t)
			const query = `
				select shard_00003.next_id('shard_00003.next_id_seq'::pg_catalog.regclass, 7)
				union all select shard_00003.next_id() union all select shard_00003.next_ids(2)`
			for i, id := range several[shards.ID](t, victim, query) {
				shard, typ := one[int](t, victim, "select kiloshard.id_shard($1)", id), one[int](t, victim, "select kiloshard.id_type($1)", id)
				if parts := layout.Parts(id); shard != 3 || parts.Shard != 3 || typ != parts.Type || (typ == 7) != (i == 0) {
					t.Errorf("ID %d has %+v, SQL says shard %d and type %d", id, parts, shard, typ)
				}
				one[int64](t, victim, "select kiloshard.id_sequence($1)::bigint", id)
				one[*time.Time](t, victim, "select kiloshard.id_time($1)", id)
				one[*int64](t, victim, "select kiloshard.id_floor(pg_catalog.clock_timestamp())")
			}
		})
	}
}
