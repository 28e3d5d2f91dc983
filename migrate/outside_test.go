package migrate_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
)

const disableTx = "---- tern: disable-tx ----\n"

// valid counts the valid indexes of a shard, and the invalid ones.
const valid = `select format('%s %s', count(*) filter (where indisvalid), count(*) filter (where not indisvalid))
	from pg_index i join pg_class c on c.oid = i.indexrelid
	where c.relnamespace = (select oid from pg_namespace where nspname = current_schema()) and c.relname <> 'schema_version_pkey'`

// ledgerOf has what the ledger of a shard's host knows of the shard.
func ledgerOf(n shards.Number) string {
	return fmt.Sprintf(`select string_agg(direction || version || coalesce('.' || statement, '') || case when error is null then '' else ' failed' end,
		', ' order by entry) from kiloshard.ledger where shard = %d`, n)
}

func TestOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, 12, 2,
		"001_users.sql", users,
		"002_indexes.sql", "-- Indexes.\n"+disableTx+`create unique index concurrently users_both on users (id, name);
			create index concurrently on users (lower(name)) where id > 7; -- which holds a snapshot while it is built
			vacuum users;
			create table seen as select current_schema() as schema, current_setting('idle_session_timeout') as idle;`,
		"003_photos.sql", "create table photos (id int)",
		"004_index.sql", disableTx+`create index concurrently "photos_{{.shard}}" on {{.schema}}.photos (id)`,
		"005_more.sql", "create table more (id int)", "006_more.sql", "create table still_more (id int)",
	)
	b.cfg.PerHost = 6
	report := b.up()
	equal(t, "steps", fmt.Sprint(report.Steps), "[{0 6 0-11}]")
	for n := range b.m.All().All() {
		equal(t, "indexes", b.value(n, valid), "5 0")
		equal(t, "schema", b.value(n, "select schema from seen"), b.m.Schema(n))
		equal(t, "how long its session may be idle", b.value(n, "select idle from seen"), "1min")
		equal(t, "version", b.value(n, "select version from schema_version"), "6")
		equal(t, "ledger", b.value(n, ledgerOf(n)), "up1, up2.1, up2.2, up2.3, up2.4, up2, up3, up4.1, up4, up5, up6")
		equal(t, "what is current", b.value(n, fmt.Sprintf("select string_agg(version::text, ' ' order by entry) from kiloshard.ledger where shard = %d and current", n)), "1 2 3 4 5 6")
		equal(t, "the file took as long as its statements", b.value(n, fmt.Sprintf(`select (select took from kiloshard.ledger where shard = %[1]d and version = 2 and statement is null)
			>= (select sum(took) from kiloshard.ledger where shard = %[1]d and version = 2 and statement is not null)`, n)), "true")
	}
	equal(t, "locks that are left", b.value(0, "select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"), "0")
}

// Each of several runs waits for the others in a way that lets an index be built.
func TestOutsideOfATransactionByTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, 16, 1,
		"001_users.sql", users,
		"002_index.sql", disableTx+"create index concurrently users_lower on users (lower(name)); insert into users values (1, 'once')",
		"003_log.sql", "create table log ()",
		"004_index.sql", disableTx+"create index concurrently users_upper on users (upper(name))",
	)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := migrate.Up(t.Context(), b.cfg); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for n := range b.m.All().All() {
		equal(t, "ledger", b.value(n, ledgerOf(n)), "up1, up2.1, up2.2, up2, up3, up4.1, up4")
		equal(t, "indexes", b.value(n, valid), "4 0")
	}
}

func TestDownOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	b := setup(t, 6, 2,
		"001_users.sql", users+below+"drop table users",
		"002_index.sql", "create index users_lower on users (lower(name))"+below+disableTx+"drop index concurrently users_lower; vacuum users",
		"003_index.sql", disableTx+"create index concurrently users_upper on users (upper(name))"+below+"drop index users_upper",
	)
	b.up()
	equal(t, "indexes at 3", b.value(4, valid), "4 0")
	b.cfg.To = 1
	equal(t, "steps", fmt.Sprint(down(t, b).Steps), "[{3 1 0-5}]")
	for n := range b.m.All().All() {
		equal(t, "indexes at 1", b.value(n, valid), "2 0")
		equal(t, "ledger", b.value(n, ledgerOf(n)), "up1, up2, up3.1, up3, down3.1, down3, down2.1, down2.2, down2")
	}
	b.cfg.To = 0
	b.up()
	equal(t, "indexes at 3 again", b.value(4, valid), "4 0")
}

// What a file sets is set for its own statements, also when it goes on later, and never for the ledger's.
func TestSettingsOfAFileOutsideOfATransaction(t *testing.T) {
	t.Parallel()
	body := disableTx + `set role pg_monitor;
		create temp table scratch ();
		set application_name = later; set default_transaction_read_only = on; reset default_transaction_read_only; set work_mem = '4321kB';
		reset role;
		select 1 / (select count(*) from {{.schema}}.users);
		create table {{.schema}}.seen as select current_user::text as who, current_setting('work_mem') as memory, current_schemas(false)::text as path`
	b := setup(t, 2, 1, "001_users.sql", users, "002_set.sql", body, "003_look.sql", "create table look as select current_setting('work_mem') as memory")
	b.cfg.PerHost = 1
	_, partial := b.upFails()
	equal(t, "failed", len(partial.Failed), 2)
	equal(t, "ledger", b.value(0, ledgerOf(0)), "up1, up2.2, up2 failed")
	b.exec(0, "insert into users values (1, 'ann')")
	b.exec(1, "insert into users values (1, 'ann')")
	b.up()
	for n := range b.m.All().All() {
		equal(t, "ledger", b.value(n, ledgerOf(n)), "up1, up2.2, up2 failed, up2.8, up2.9, up2, up3")
		equal(t, "set", b.value(n, "select format('%s %s', memory, path) from seen"), "4321kB {"+b.m.Schema(n)+"}")
		equal(t, "role", b.value(n, "select who <> 'pg_monitor' from seen"), "true")
		equal(t, "next file", b.value(n, "select memory <> '4321kB' from look"), "true")
	}
}

// A tern program that waits holds a snapshot, so no index can be built concurrently.
func TestTernWaitsWhileAnIndexIsToBeBuilt(t *testing.T) {
	t.Parallel()
	b := setup(t, 2, 1, "001_users.sql", users, "002_index.sql", disableTx+"create index concurrently users_lower on users (lower(name))")
	migrator, _ := ternOn(t, b, 1)
	blocked := make(chan error, 1)
	b.cfg.PerHost, b.cfg.TernWait = 1, 100*time.Millisecond
	b.cfg.Progress = observer(func(n shards.Number) {
		if n != 0 {
			return
		}
		go func() { blocked <- migrator.SetVersion(t.Context(), 1) }()
		waitFor(t, b, `select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and not granted
			and database = (select oid from pg_database where datname = current_database()))`)
	})
	_, partial := b.upFails()
	equal(t, "done", partial.Done.String(), "0")
	if !errors.Is(partial, migrate.ErrTernAtWork) {
		t.Errorf("got %v, want ErrTernAtWork", partial)
	}
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	b.cfg.Progress = nil
	equal(t, "done", b.up().Done.String(), "1")
}

// While an index is built concurrently nobody waits behind whoever it waits for.
func TestLockTimeoutIsNotForConcurrentIndexes(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users)
	b.up()
	holder := b.connect(b.m.Host(0))
	if _, err := holder.Exec(t.Context(), "begin; lock table shard_00000.users in row exclusive mode"); err != nil {
		t.Fatal(err)
	}
	b.cfg.LockTimeout, b.cfg.Retries = 100*time.Millisecond, -1
	b.cfg.Files = files("001_users.sql", users, "002_index.sql", disableTx+`
		create index concurrently users_lower on users (lower(name));
		create table seen as select current_setting('lock_timeout') as timeout`)
	var wg sync.WaitGroup
	wg.Go(func() {
		waitFor(t, b, "select exists (select from pg_stat_activity where wait_event = 'virtualxid' and datname = current_database())")
		if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
			t.Error(err)
		}
	})
	b.up()
	wg.Wait()
	equal(t, "indexes", b.value(0, valid), "3 0")
	equal(t, "timeout of the others", b.value(0, "select timeout from seen"), "100ms")
}

// A tern program that comes while an index is built waits for the run, and the build for the program's snapshot.
func TestTernComesWhileAnIndexIsBuilt(t *testing.T) {
	t.Parallel()
	b := setup(t, 1, 1, "001_users.sql", users)
	b.up()
	migrator, conn := ternOn(t, b, 0)
	holder := b.connect(b.m.Host(0))
	if _, err := holder.Exec(t.Context(), "begin; lock table shard_00000.users in row exclusive mode"); err != nil {
		t.Fatal(err)
	}
	b.cfg.Files = files("001_users.sql", users, "002_index.sql", disableTx+"create index concurrently users_lower on users (lower(name))")
	var terns error
	var wg sync.WaitGroup
	wg.Go(func() {
		waitFor(t, b, "select exists (select from pg_stat_activity where wait_event = 'virtualxid' and datname = current_database())")
		var waits sync.WaitGroup
		waits.Go(func() { terns = migrator.SetVersion(t.Context(), 1) })
		waitFor(t, b, fmt.Sprintf("select exists (select from pg_stat_activity where wait_event = 'advisory' and pid = %d)", conn.PgConn().PID()))
		if _, err := holder.Exec(t.Context(), "rollback"); err != nil {
			t.Error(err)
		}
		waits.Wait()
	})
	_, err := migrate.Up(t.Context(), b.cfg)
	wg.Wait()
	const deadlock = "SQLSTATE 40P01"
	if (err == nil || !strings.Contains(err.Error(), deadlock)) && (terns == nil || !strings.Contains(terns.Error(), deadlock)) {
		t.Errorf("Up got %v, tern got %v: want that one of them is told of a deadlock", err, terns)
	}
	b.up()
	equal(t, "indexes", b.value(0, valid), "3 0")
}
