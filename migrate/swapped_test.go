package migrate_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/migrate"
)

// TestSwapped has somebody put a view in the place of a table while it is waited for.
func TestSwapped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, schema, table, columns, view string
		read                               func(*bundle) error
	}{
		{
			"status, of a version table", "shard_00001", "schema_version", "version int4 not null primary key", "select loot.took() as version",
			func(b *bundle) error { _, err := migrate.Status(b.t.Context(), b.cfg); return err },
		},
		{
			"history, of the ledger", "kiloshard", "ledger", "run text, who text, role name, direction text, version int, file text, began timestamptz, took interval, shard int, error text, statement int",
			`select ''::text as run, ''::text as who, ''::name as role, ''::text as direction, loot.took() as version, ''::text as file, now() as began, interval '0' as took,
				0 as shard, ''::text as error, null::int as statement`,
			func(b *bundle) error { _, err := migrate.History(b.t.Context(), b.cfg, 0, ""); return err },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, 1, "001_users.sql", users)
			var err error
			taken := pgtest.Swap(t, b.m.Hosts()[0].ConnString(), test.schema, test.table, test.columns, test.view, func() { err = test.read(b) })
			if taken != "" {
				t.Errorf("code of somebody else ran with the rights of %s", taken)
			}
			if test.table == "ledger" && (err == nil || !strings.Contains(err.Error(), "expected a plain table")) {
				t.Errorf("got %v", err)
			}
		})
	}
}
