package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Swap has a role that may create in a schema make a table there, and lock it. While read waits for the table, the role puts a
// view in its place, whose query may call loot.took(). Swap returns the role whose rights that function had, empty for none,
// even if its transaction was rolled back. A database can have one Swap.
func Swap(t testing.TB, dsn, schema, table, columns, view string, read func()) string {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.Background()) }() // it has done what it was to do
	squatter := Nobody(t, dsn)
	role := pgx.Identifier{squatter.Config().User}.Sanitize()
	exec := func(conn *pgx.Conn, text string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(context.Background(), text).ReadAll(); err != nil {
			t.Error(err)
		}
	}
	exec(owner, "create schema if not exists "+schema+"; grant all on schema "+schema+" to "+role+"; create schema loot authorization "+role)
	t.Cleanup(func() {
		owner, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = owner.Close(context.Background()) }()
		exec(owner, "drop owned by "+role+" cascade")
	})
	table = schema + "." + table
	exec(squatter, "create sequence loot.taken; create function loot.took() returns int language plpgsql as "+
		"'begin perform setval(''loot.taken'', (select oid::bigint from pg_catalog.pg_roles where rolname = current_user)); return 1; end'; "+
		"grant usage on schema loot to public; grant all on loot.taken to public; "+
		"create table "+table+" ("+columns+"); grant select on "+table+" to public")
	exec(squatter, "begin; lock table "+table+" in access exclusive mode")
	done := make(chan struct{})
	go func() {
		defer close(done)
		read()
	}()
	for waits, deadline := false, time.Now().Add(time.Minute); !waits; {
		const query = `select exists (select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database()))`
		if err := owner.QueryRow(context.Background(), query).Scan(&waits); err != nil || time.Now().After(deadline) {
			t.Errorf("nobody waits for %s: %v", table, err)
			break
		}
	}
	exec(squatter, "alter table "+table+" rename to aside; create view "+table+" as "+view+"; grant select on "+table+" to public; commit")
	<-done
	var taken string
	if err := owner.QueryRow(context.Background(), "select coalesce(max(rolname), '') from loot.taken t join pg_roles r on r.oid = t.last_value and t.is_called").Scan(&taken); err != nil {
		t.Error(err)
	}
	return taken
}
