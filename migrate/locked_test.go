package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/migrate/drift"
)

// TestLockedTables has somebody lock what every command reads, and not let go.
func TestLockedTables(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users)
	b.up()
	config := b.m.Config()
	config.Hosts[0].DSN += "&lock_timeout=1"
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.cfg
	cfg.Map = m
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	holder := b.connect(b.m.Host(0))
	for _, test := range []struct {
		name, table string
		read        func() error
	}{
		{"status, of a ledger", "kiloshard.ledger", func() error { _, err := migrate.Status(ctx, cfg); return err }},
		{"history", "kiloshard.ledger", func() error { _, err := migrate.History(ctx, cfg, 0, ""); return err }},
		{"status, of a version", "shard_00001.schema_version", func() error { _, err := migrate.Status(ctx, cfg); return err }},
		{"drift", "shard_00001.schema_version", func() error { _, err := drift.Look(ctx, drift.Config{Map: m}); return err }},
	} {
		if _, err := holder.Exec(ctx, "begin; lock table "+test.table+" in access exclusive mode"); err != nil {
			t.Fatal(err)
		}
		err := test.read()
		var pg *pgconn.PgError
		want := fmt.Sprintf("%s by process %d, role ", test.table, holder.PgConn().PID())
		if !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", test.name, err, want)
		}
		if _, err := holder.Exec(ctx, "rollback"); err != nil {
			t.Fatal(err)
		}
	}
}
