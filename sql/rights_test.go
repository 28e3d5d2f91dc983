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
	const insufficientPrivilege, notDrawn = "42501", "55000"
	refused(t, app, insufficientPrivilege, "select shard_00002.next_id()")
	refused(t, app, insufficientPrivilege, "select shard_00001.next_id('shard_00002.next_id_seq')")
	refused(t, app, insufficientPrivilege, "select pg_catalog.setval('shard_00001.next_id_seq', 1)")

	// catch_up runs with its owner's rights, and asks for proof.
	refused(t, app, notDrawn, "select kiloshard.catch_up(2, 'shard_00002.next_id_seq', 1, 1)")
	refused(t, app, notDrawn, "select kiloshard.catch_up(1, 'shard_00001.next_id_seq', 1, 1)")
	exec(t, app, "select shard_00001.next_id()")
	refused(t, app, insufficientPrivilege, "select kiloshard.catch_up(1, 'shard_00001.next_id_seq', 1, 1)")
	if last := one[int64](t, b.conn, "select last_value from shard_00002.next_id_seq"); last != 1 {
		t.Errorf("the sequence of shard 2 was moved to %d", last)
	}

	// The owner drew, and gave up its rights within the session: what it drew is no proof any more,
	// unless the role that comes after it learns the value.
	owner := connect(t, b.m)
	exec(t, owner, "select shard_00002.next_id()", "set role "+one[string](t, app, "select pg_catalog.quote_ident(session_user)"))
	refused(t, owner, insufficientPrivilege, "select kiloshard.catch_up(2, 'shard_00002.next_id_seq', 1, 1)")
}

// TestCatchUpOnlyMovesForward calls it with a sequence that is near the clock or ahead of it.
func TestCatchUpOnlyMovesForward(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.app(t)
	for _, ahead := range []int{0, 100 * 1024, 1e6 * 1024} {
		began := time.Now()
		exec(t, b.conn, "select shard_00001.next_id()",
			fmt.Sprintf("select pg_catalog.setval('shard_00001.next_id_seq', pg_catalog.nextval('shard_00001.next_id_seq') + %d)", ahead))
		v := one[int64](t, app, "select pg_catalog.nextval('shard_00001.next_id_seq')")
		got := one[int64](t, app, "select kiloshard.catch_up(1, 'shard_00001.next_id_seq', $1, 1)", v)
		// Not beyond the clock, which has gone on meanwhile.
		if passed := time.Since(began).Milliseconds(); got <= v || got > v+(50+passed)*1024 {
			t.Errorf("from %d, %d slots ahead, catch_up went to %d", v, ahead, got)
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
		"pg_sleep(double precision)", "currval(regclass)", "generate_series(int, int)", "pg_advisory_xact_lock(int, int)",
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
