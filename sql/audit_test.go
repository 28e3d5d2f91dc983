package sql_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// TestAudit: a role that the owner lets call the function adds lines in its own name. It cannot read, change or remove any.
func TestAudit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	nobody := pgtest.Nobody(t, b.m.Hosts()[0].ConnString())
	role := pgx.Identifier{nobody.Config().User}.Sanitize()
	t.Cleanup(func() {
		if _, err := b.conn.Exec(context.Background(), "drop owned by "+role); err != nil {
			t.Error(err)
		}
	})
	const insufficientPrivilege, note = "42501", "select kiloshard.note_command('kiloshard psql 3', 'alice@laptop', 'v1.2.3')"
	refused(t, nobody, insufficientPrivilege, note)
	exec(t, b.conn, "grant usage on schema kiloshard to "+role)
	refused(t, nobody, insufficientPrivilege, note)
	exec(t, b.conn, "grant execute on function kiloshard.note_command(text, text, text) to "+role)
	exec(t, nobody, note)
	const row = `select role::text || ' ' || command || ' ' || who || ' ' || release || ' ' || (address is not distinct from pg_catalog.inet_client_addr())
		|| ' ' || (at between pg_catalog.now() - interval '1 hour' and pg_catalog.now()) from kiloshard.audit`
	if got, want := one[string](t, b.conn, row), nobody.Config().User+" kiloshard psql 3 alice@laptop v1.2.3 true true"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	for _, statement := range []string{
		"table kiloshard.audit", "insert into kiloshard.audit (command) values ('x')", "update kiloshard.audit set command = 'x'", "delete from kiloshard.audit", "truncate kiloshard.audit",
		"drop table kiloshard.audit", "create or replace function kiloshard.note_command(command text, who text, release text) returns void language sql as ''",
	} {
		refused(t, nobody, insufficientPrivilege, statement)
	}
	exec(t, nobody, "select kiloshard.note_command(pg_catalog.repeat('x', 1000000), pg_catalog.repeat('x', 1000000), 'x')")
	if got := one[int](t, b.conn, "select max(pg_catalog.length(command) + pg_catalog.length(who)) from kiloshard.audit"); got > 8192 {
		t.Errorf("a line has %d characters", got)
	}
}

// TestAuditIsInstalledLater on a host of a release that had no audit lines, and keeps those that are there.
func TestAuditIsInstalledLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn, "drop table kiloshard.audit", "drop function kiloshard.note_command(text, text, text)", "update kiloshard.settings set engine = 'older'")
	for range 2 {
		if _, err := provision.Upgrade(t.Context(), provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: b.m}}); err != nil {
			t.Fatal(err)
		}
		exec(t, b.conn, "select kiloshard.note_command('x', 'x', 'x')", "update kiloshard.settings set engine = 'older'")
	}
	if got := one[int](t, b.conn, "select count(*) from kiloshard.audit"); got != 2 {
		t.Errorf("there are %d lines, expected 2", got)
	}
	differences, err := provision.Verify(t.Context(), b.m)
	if err != nil || len(differences) != 1 || !strings.Contains(differences[0].Found, "older") {
		t.Errorf("verify: got %v, %v, expected the version alone", differences, err)
	}
}
