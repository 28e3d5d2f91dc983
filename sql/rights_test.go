package sql_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// app makes a role that owns nothing and may use shard 1, and returns a session of it.
func (b *bundle) app(t *testing.T) *pgx.Conn {
	t.Helper()
	role := fmt.Sprintf("kiloshard_app_%d_%s", os.Getpid(), one[string](t, b.conn, "select pg_catalog.right(pg_catalog.current_database(), 20)"))
	quoted := pgx.Identifier{role}.Sanitize()
	exec(t, b.conn,
		"create role "+quoted,
		"grant usage on schema kiloshard, shard_00001, shard_00002 to "+quoted,
		"grant usage on sequence shard_00001.next_id_seq to "+quoted)
	t.Cleanup(func() {
		for _, statement := range []string{"drop owned by " + quoted, "drop role " + quoted} {
			if _, err := b.conn.Exec(context.Background(), statement); err != nil {
				t.Error(err)
			}
		}
	})
	conn := connect(t, b.m)
	exec(t, conn, "set session authorization "+quoted)
	return conn
}

func TestARoleThatOwnsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.app(t)
	for range 3 { // the first finds the shard idle, and so does each later one
		before := time.Now()
		checkNear(t, b.m, one[shards.ID](t, app, "select shard_00001.next_id() from (select pg_catalog.pg_sleep(0.02)) as idle"), before, time.Now())
	}
	if ids := several[shards.ID](t, app, "select shard_00001.next_ids(1000)"); len(ids) != 1000 || !slices.IsSorted(ids) {
		t.Errorf("next_ids(1000) gave %d IDs, sorted %t", len(ids), slices.IsSorted(ids))
	}
	id := one[shards.ID](t, app, "select shard_00001.next_id()")
	if at := one[time.Time](t, app, "select kiloshard.id_time($1)", id); !at.Equal(b.m.Time(id)) {
		t.Errorf("id_time(%d) is %s, expected %s", id, at, b.m.Time(id))
	}
}

func TestARoleWithoutTheSequence(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.app(t)
	const insufficientPrivilege = "42501"
	refused(t, app, insufficientPrivilege, "select shard_00002.next_id()")
	refused(t, app, insufficientPrivilege, "select shard_00001.next_id('shard_00002.next_id_seq')")
	refused(t, app, insufficientPrivilege, "select pg_catalog.setval('shard_00001.next_id_seq', 1)")

	// catch_up runs with its owner's rights, and does only what the next draw would do.
	exec(t, b.conn, "select shard_00001.next_id()")
	last := one[int64](t, b.conn, "select last_value from shard_00001.next_id_seq")
	if v := one[*int64](t, app, "select kiloshard.catch_up_to_clock(1, 'shard_00001.next_id_seq', 1, $1::bigint - 1)", last); v != nil {
		t.Errorf("catch_up gave %d to a caller that does not know the last value", *v)
	}
	if now := one[int64](t, b.conn, "select last_value from shard_00001.next_id_seq"); now != last {
		t.Errorf("the sequence was moved from %d to %d", last, now)
	}
	if now := one[int64](t, b.conn, "select last_value from shard_00002.next_id_seq"); now != 1 {
		t.Errorf("the sequence of shard 2 was moved to %d", now)
	}
}

// A role that reads a table knows about where its sequence is, by the newest ID. It moves no sequence by that.
func TestReaderDrawsNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.app(t)
	role := one[string](t, app, "select current_user::text")
	exec(t, b.conn, "select shard_00002.next_id()")
	const notDrawn = "55000"
	check := func(conn *pgx.Conn) {
		t.Helper()
		last := one[int64](t, b.conn, "select last_value from shard_00002.next_id_seq")
		exec(t, b.conn, "select pg_catalog.pg_sleep(0.2)") // the shard is idle
		refused(t, conn, notDrawn, "select kiloshard.catch_up_to_clock(2, 'shard_00002.next_id_seq', 1000, $1)", last)
		if now := one[int64](t, b.conn, "select last_value from shard_00002.next_id_seq"); now != last {
			t.Errorf("the sequence was moved from %d to %d", last, now)
		}
	}
	check(app)

	// A function that runs with its owner's rights draws for the role, idle shard or not. The owner of this one is a role that may draw.
	exec(t, b.conn, `create schema api;
create function api.make_id() returns bigint language sql security definer return shard_00002.next_id()`,
		"grant usage on schema api to "+pgx.Identifier{role}.Sanitize())
	for range 3 {
		before := time.Now()
		checkNear(t, b.m, one[shards.ID](t, app, "select api.make_id() from (select pg_catalog.pg_sleep(0.2)) as idle"), before, time.Now())
	}
}

// TestCatchUpOnlyMovesToTheClock calls it for sequences behind the clock, near it and ahead of it.
func TestCatchUpOnlyMovesToTheClock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.app(t)
	const slots, ahead = 1024, 6 * 1024 // 5 ms, and the slot goes on from the last one
	for _, distance := range []int{-1e6 * slots, -100 * slots, 0, 100 * slots, 1e6 * slots} {
		exec(t, b.conn, "select pg_catalog.setval('shard_00001.next_id_seq', "+fmt.Sprintf(
			"(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - %s) * 1024000)::bigint + %d)", "'2026-01-01Z'::timestamptz", distance))
		seen := one[int64](t, b.conn, "select last_value from shard_00001.next_id_seq")
		moved := one[*int64](t, app, "select kiloshard.catch_up_to_clock(1, 'shard_00001.next_id_seq', 1000000, $1)", seen)
		last := one[int64](t, b.conn, "select last_value from shard_00001.next_id_seq")
		clock := one[int64](t, b.conn, "select pg_catalog.ceil(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - '2026-01-01Z'::timestamptz) * 1024000)::bigint")
		if last < seen || (moved == nil) != (last == seen) || moved != nil && (*moved <= seen || last > clock+ahead) {
			t.Errorf("%d slots from the clock: catch_up moved from %d to %d, %d slots from the clock", distance, seen, last, last-clock)
		}
		if distance <= -100*slots && moved == nil {
			t.Errorf("%d slots from the clock: catch_up did nothing", distance)
		}
	}
}

// evil returns a session whose search_path has functions, operators and types of somebody else before
// Postgres's own.
func (b *bundle) evil(t *testing.T) *pgx.Conn {
	t.Helper()
	exec(t, b.conn, "create schema evil")
	for _, operator := range []string{"+", "-", "*", "<<", ">>", "&", "|", "<", ">", "<=", ">=", "=", "<>"} {
		for i, types := range [][2]string{
			{"bigint", "bigint"},
			{"bigint", "int"},
			{"int", "int"},
			{"double precision", "double precision"},
			{"bigint", "double precision"},
			{"timestamptz", "timestamptz"},
			{"double precision", "int"},
			{"numeric", "numeric"},
			{"bigint", "numeric"},
			{"double precision", "numeric"},
			{"oid", "oid"},
			{"name", "name"},
			{"text", "text"},
			{"name", "text"},
		} {
			name := fmt.Sprintf("evil.op%x_%d", operator, i)
			exec(t, b.conn,
				fmt.Sprintf("create function %s(a %s, b %s) returns %s language plpgsql as $$ begin raise 'evil operator'; end $$", name, types[0], types[1], types[0]),
				fmt.Sprintf("create operator evil.%s (function = %s, leftarg = %s, rightarg = %s)", operator, name, types[0], types[1]))
		}
	}
	for _, function := range []string{
		"nextval(regclass)", "setval(regclass, bigint)", "clock_timestamp()", "date_part(text, timestamptz)", "floor(double precision)",
		"pg_sleep(double precision)", "has_sequence_privilege(regclass, text)", "abs(double precision)", "currval(regclass)", "generate_series(int, int)", "pg_advisory_xact_lock(int, int)",
		"pg_advisory_xact_lock_shared(int, int)", "pg_sequence_last_value(regclass)", "current_setting(text)", "lpad(text, int, text)",
		"timezone(text, timestamptz)", "to_regnamespace(text)", "format(text, text)",
	} {
		exec(t, b.conn, "create function evil."+function+" returns bigint language plpgsql as $$ begin raise 'evil function'; end $$")
	}
	exec(t, b.conn,
		"create domain evil.regclass as text check (false)", "create domain evil.oid as text check (false)",
		"create table evil.pg_sequence (n int)", "create table evil.pg_class (n int)")

	victim := connect(t, b.m)
	exec(t, victim, "set search_path = evil, pg_catalog")
	return victim
}

func TestHostileSearchPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	victim := b.evil(t)
	for range 2 {
		before := time.Now()
		checkNear(t, b.m, one[shards.ID](t, victim, "select shard_00003.next_id() from (select pg_catalog.pg_sleep(0.02)) as idle"), before, time.Now())
	}
	if ids := several[shards.ID](t, victim, "select shard_00003.next_ids(300)"); len(ids) != 300 || !slices.IsSorted(ids) {
		t.Errorf("next_ids(300) gave %d IDs, sorted %t", len(ids), slices.IsSorted(ids))
	}
	id := one[shards.ID](t, victim, "select shard_00003.next_id('shard_00003.next_id_seq'::pg_catalog.regclass)")
	if at := one[time.Time](t, victim, "select kiloshard.id_time($1)", id); !at.Equal(b.m.Time(id)) {
		t.Errorf("id_time(%d) is %s, expected %s", id, at, b.m.Time(id))
	}
	floor := one[shards.ID](t, victim, "select kiloshard.id_floor($1::pg_catalog.timestamptz)", b.m.Time(id))
	if floor > id || id-floor >= 1<<23 {
		t.Errorf("id_floor of the time of %d is %d", id, floor)
	}
	if n := one[int](t, victim, "select kiloshard.id_shard($1)", id); n != 3 {
		t.Errorf("id_shard(%d) is %d, expected 3", id, n)
	}

	// Ahead of the clock the call sleeps.
	exec(t, b.conn, "select pg_catalog.setval('shard_00003.next_id_seq', pg_catalog.nextval('shard_00003.next_id_seq') + 50 * 1024)")
	if next := one[shards.ID](t, victim, "select shard_00003.next_id()"); next <= id {
		t.Errorf("ID %d after %d", next, id)
	}
}
