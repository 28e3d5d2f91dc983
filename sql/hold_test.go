package sql_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestNobodyElseHoldsNextIDUp has a role without any grant take all locks that it can, in a transaction that it leaves
// open, while others need IDs of idle shards.
func TestNobodyElseHoldsNextIDUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const idle = "select shard_00001.next_id(), shard_00002.next_id() from pg_catalog.pg_sleep(0.05)"
	exec(t, b.conn, idle)
	type relation struct {
		OID  uint32
		Name string
	}
	rows, err := b.conn.Query(t.Context(), `select oid, oid::pg_catalog.regclass::text from pg_catalog.pg_class where relkind in ('r', 'S')
		and relnamespace in (select oid from pg_catalog.pg_namespace where nspname ~ '^(kiloshard|shard_)')`)
	if err != nil {
		t.Fatal(err)
	}
	relations, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil || len(relations) < 9 {
		t.Fatal(relations, err)
	}
	database := one[string](t, b.conn, "select pg_catalog.current_database()::text")
	exec(t, b.conn, fmt.Sprintf("create role nobody_%s", database))
	t.Cleanup(func() { dropRole(t, b.m, "nobody_"+database) })
	nobody := connect(t, b.m)
	exec(t, nobody, fmt.Sprintf("set session authorization nobody_%s", database), "begin")
	for class := range 3 {
		for _, r := range relations {
			exec(t, nobody, fmt.Sprintf("select pg_catalog.pg_advisory_lock_shared(%d + %d, %d), pg_catalog.pg_advisory_lock_shared(%d + %[2]d, 1)", 0x6B696C6F, class, r.OID, 0x6B696C6F))
		}
	}
	for _, r := range relations {
		for _, statement := range []string{
			fmt.Sprintf("lock table %s in share update exclusive mode", r.Name),
			fmt.Sprintf("prepare p as insert into %s default values", r.Name),
			fmt.Sprintf("prepare p as select from %s for update", r.Name),
			fmt.Sprintf("select pg_catalog.nextval(%d::pg_catalog.regclass)", r.OID), // keeps its lock, although it fails
			fmt.Sprintf("analyze %s", r.Name),
			fmt.Sprintf("comment on table %s is ''", r.Name),
		} {
			exec(t, nobody, "do $do$ begin execute $x$"+statement+"$x$; exception when others then null; end $do$")
		}
	}
	exec(t, b.conn, "set statement_timeout = '5s'", idle, idle, "select shard_00001.next_ids(100)", "select pg_catalog.setval('shard_00002.next_id_seq', 1)", idle)
	exec(t, nobody, "rollback")
}

// TestLocksBeforeRights has a service, which may use the helper schema, run statements that lock a table before Postgres looks
// whether they may, and then wait for a table that another session of the role has locked.
func TestLocksBeforeRights(t *testing.T) {
	t.Parallel()
	b := setup(t)
	app := b.app(t)
	exec(t, b.conn, "create schema mine")
	exec(t, b.conn, "create table mine.t (n int)", "grant all on schema mine to public", "grant all on mine.t to public")
	holder := connect(t, b.m)
	exec(t, holder, "begin", "lock table mine.t in access exclusive mode")
	setter := one[string](t, b.conn, "select c.oid::pg_catalog.regclass::text from pg_catalog.pg_class c where c.relname = 'setter_0'")
	exec(t, app, "set statement_timeout = '1min'") // it would wait
	for _, statement := range []string{
		"create constraint trigger t after insert on %s from mine.t for each row execute function pg_catalog.suppress_redundant_updates_trigger()",
		"create rule r as on insert to %s do instead select from mine.t",
		"create table mine.child () inherits (%s, mine.t)",
	} {
		const insufficientPrivilege = "42501"
		refused(t, app, insufficientPrivilege, fmt.Sprintf(statement, setter))
	}
	exec(t, holder, "rollback")
}
