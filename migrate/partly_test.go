package migrate_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

// TestRowsThatFewShardsHave makes a unique index over rows that are there twice, in 7 of 256 shards.
func TestRowsThatFewShardsHave(t *testing.T) {
	t.Parallel()
	const few = "0,41,127-128,200,254-255"
	b := setup(t, 256, 2, "001_users.sql", users)
	b.up()
	for n := range set(t, few).All() {
		b.exec(n, fmt.Sprintf("insert into users values (1, 'user %[1]d'), (2, 'user %[1]d')", n))
	}
	b.cfg.Files = files("001_users.sql", users, "002_photos.sql", photos,
		"003_unique.sql", "alter table users add column nick text;\n\ncreate unique index users_name on users (name);\ncreate table behind ();",
		"004_more.sql", "create table more ();")
	report, partial := b.upFails()
	equal(t, "done", report.Done.String(), "1-40,42-126,129-199,201-253")
	equal(t, "not attempted", partial.NotAttempted.String(), "")
	equal(t, "causes", len(partial.Causes), 0)
	equal(t, "steps", fmt.Sprint(report.Steps), "[{1 2 "+few+"} {1 4 1-40,42-126,129-199,201-253}]")

	var failed []shards.Number
	for _, f := range partial.Failed {
		failed = append(failed, f.Shard)
		var file *migrate.FileError
		var pg *pgconn.PgError
		if !errors.As(f, &file) || !errors.As(f, &pg) {
			t.Fatalf("got %v, want a FileError of a PgError", f)
		}
		equal(t, "SQLSTATE", pg.Code, "23505")
		equal(t, "error", f.Error(), fmt.Sprintf(`shard %d (shard_%05[1]d on %s): migration 003_unique.sql, line 3: could not create unique index "users_name" (SQLSTATE 23505); `+
			`detail: Key (name)=(user %[1]d) is duplicated.; in: create unique index users_name on users (name)`, f.Shard, b.m.Host(f.Shard).Name))
		equal(t, "what its file did before", b.value(f.Shard, "select count(*) from information_schema.columns where table_schema = current_schema() and column_name = 'nick'"), "0")
	}
	equal(t, "failed", shards.SetOf(failed...).String(), few)

	for n := range set(t, few).All() {
		b.exec(n, "delete from users where id = 2")
	}
	report = b.up()
	equal(t, "done when mended", report.Done.String(), few)
	equal(t, "steps when mended", fmt.Sprint(report.Steps), "[{2 4 "+few+"}]")
	equal(t, "up to date", report.UpToDate.Len(), 256-7)
	b.hasVersions(b.m.All(), 4)
	for _, n := range []shards.Number{0, 255} { // of each host
		equal(t, "entries of failures", b.value(n, "select count(*) from kiloshard.ledger where sqlstate = '23505' and version = 3"), map[bool]string{true: "3", false: "4"}[n == 0])
		equal(t, "current entries", b.value(n, "select count(*) from kiloshard.ledger where current"), "512")
	}
}
