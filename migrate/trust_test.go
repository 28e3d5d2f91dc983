package migrate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/sql"
)

// TestSquatting has a role that may create in a schema make what Up would use, before Up does, so that its code would run
// with the rights of whoever migrates.
func TestSquatting(t *testing.T) {
	t.Parallel()
	const (
		loot = `create schema loot; grant usage on schema loot to public; create table loot.taken (by name); grant insert on loot.taken to public;
			create function loot.take() returns trigger language plpgsql as 'begin insert into loot.taken values (current_user); return new; end';
			create function loot.took() returns int language plpgsql as 'begin insert into loot.taken values (current_user); return 0; end'; `
		trigger  = `create trigger grab before update on shard_00001.schema_version for each row execute function loot.take(); grant all on shard_00001.schema_version to public`
		instead  = `create view shard_00001.schema_version as select loot.took() as version; grant select on shard_00001.schema_version to public`
		inserted = `create trigger grab before insert on kiloshard.ledger for each row execute function loot.take()`
	)
	for _, test := range []struct{ name, schema, made, want string }{
		{"a version table", "shard_00001", `create table shard_00001.schema_version (version int4 not null primary key); insert into shard_00001.schema_version values (0); ` + trigger, "shard_00001.schema_version belongs to role "},
		{"a view as version table", "shard_00001", instead, "expected a plain table with a column version of type int4"},
		{"the ledger", "kiloshard", `create table kiloshard.ledger (entry bigint generated always as identity primary key); ` + inserted, "kiloshard.ledger belongs to role "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, 1, "001_users.sql", users)
			host := b.m.Hosts()[0]
			role := "squatter_" + b.value(0, "select current_database()")
			b.execHost(host, fmt.Sprintf("create role %[1]q; do $$ begin execute format('grant create on database %%I to %[1]q', current_database()); end $$", role))
			t.Cleanup(func() {
				conn, err := connect(context.Background(), host)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close(context.Background()) }()
				if _, err := conn.Exec(context.Background(), fmt.Sprintf("drop owned by %[1]q cascade; drop role %[1]q", role)); err != nil {
					t.Error(err)
				}
			})
			b.execHost(host, fmt.Sprintf("create schema if not exists kiloshard; grant all on schema %s to %q", test.schema, role))
			b.execHost(host, fmt.Sprintf("set session authorization %q; %s%s", role, loot, test.made))
			_, err := migrate.Up(t.Context(), b.cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, expected %q", err, test.want)
			}
			if taken := b.value(0, "select coalesce(string_agg(by, ', '), '') from loot.taken"); taken != "" {
				t.Errorf("code of the squatter ran with the rights of %s", taken)
			}
		})
	}
}

// TestNobodyElseHoldsUpUp has a role without any grant hold the locks of all shards.
func TestNobodyElseHoldsUpUp(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file string }{
		{"in a transaction", users},
		{"outside of one", disableTx + users},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 2, 1, "001_users.sql", test.file)
			holder := pgtest.Nobody(t, b.m.Hosts()[0].ConnString())
			for _, lock := range []string{fmt.Sprintf("%d, 1", sql.ShardLock), fmt.Sprintf("%d, 0", sql.LockClass), fmt.Sprintf("%d, 1", sql.LockClass), "9628173550095224"} {
				if _, err := holder.Exec(t.Context(), "select pg_advisory_lock("+lock+")"); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			if report, err := migrate.Up(ctx, b.cfg); err != nil || report.Done.Len() != 2 {
				t.Errorf("got %v, %v; expected both shards to be migrated", report.Done, err)
			}
			for _, table := range []string{"kiloshard.lock_install", "shard_00001.schema_version"} {
				if _, err := holder.Exec(t.Context(), "do 'begin lock "+table+" in access share mode; end'"); err == nil || !strings.Contains(err.Error(), "permission denied") {
					t.Errorf("%s: got %v, expected no permission", table, err)
				}
			}
		})
	}
}

// TestRunsExcludeEachOther by the lock of the version table, whoever has the advisory one.
func TestRunsExcludeEachOther(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file string }{
		{"in a transaction", users},
		{"outside of one", disableTx + users},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 1, 1, "001_users.sql", users, "002_more.sql", strings.ReplaceAll(test.file, "users", "more"))
			b.cfg.To = 1
			b.up()
			b.cfg.To = 0
			host := b.m.Hosts()[0]
			other := b.connect(host)
			if _, err := other.Exec(t.Context(), "begin; "+sql.ShardTurn{Schema: "shard_00000"}.Lock()); err != nil {
				t.Fatal(err)
			}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			go func() {
				waitFor(t, b, "select exists (select from pg_stat_activity where datname = current_database() and query ~* 'schema_version in share update' and application_name = 'kiloshard migrate')")
				interrupt()
			}()
			_, err := migrate.Up(ctx, b.cfg)
			if want := fmt.Sprintf("process %d", other.PgConn().PID()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, expected that %s is at work", err, want)
			}
			if _, err := other.Exec(t.Context(), "rollback"); err != nil {
				t.Fatal(err)
			}
			if report, err := migrate.Up(t.Context(), b.cfg); err != nil || report.Done.Len() != 1 {
				t.Errorf("got %v, %v", report.Done, err)
			}
		})
	}
}

// TestLockLetsOthersThrough runs, outside of a transaction, statements that need the table whose lock the run holds.
func TestLockLetsOthersThrough(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users, "002_all.sql", disableTx+"vacuum schema_version; analyze schema_version; reindex table concurrently schema_version")
	equal(t, "done", b.up().Done.String(), "0")
}
