package adopt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestWritesNothing holds that a plan uses no transaction ID, without which nothing is written, and that its transaction refuses to write.
func TestWritesNothing(t *testing.T) {
	t.Parallel()
	server := shardtest.OwnServer(t)
	dsn, err := server.CreateDatabase(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	run(t, dsn, "alter system set autovacuum = off")
	run(t, dsn, "select pg_reload_conf()")
	run(t, dsn, service)
	const next = "select pg_snapshot_xmax(pg_current_snapshot())::text"
	before := run(t, dsn, next)[0]
	host := shards.Host{Name: "app", DSN: dsn, Weight: 1}
	look(t, host, "")
	look(t, host, decided)
	if after := run(t, dsn, next)[0]; after != before {
		t.Errorf("the next transaction ID was %s, and is %s", before, after)
	}
	for _, statement := range []string{"create table t ()", "delete from public.jobs", "set transaction read write"} {
		_, err := adopt.Read(t.Context(), config(t, host, ""), func(ctx context.Context, tx pgx.Tx, _ *adopt.Plan) error {
			_, err := tx.Exec(ctx, statement)
			return err
		})
		if err == nil {
			t.Errorf("%s was accepted", statement)
		}
	}
}

// TestLocksOneTableAtATime holds that a table which was counted is not locked any more.
func TestLocksOneTableAtATime(t *testing.T) {
	t.Parallel()
	host := database(t, service)
	cfg := config(t, host, "")
	counted := 0
	cfg.Progress = func(table string, of, total int) {
		counted++
		locked := run(t, host.ConnString(), `
			select l.relation::regclass::text from pg_locks l join pg_class c on c.oid = l.relation join pg_stat_activity a on a.pid = l.pid
			where a.application_name = 'kiloshard adopt' and a.datname = current_database() and c.relnamespace = 'public'::regnamespace`)
		if len(locked) > 0 {
			t.Errorf("before %s (%d of %d): locked are %q", table, of, total, locked)
		}
	}
	if _, err := adopt.Look(t.Context(), cfg, nil); err != nil || counted != 5 {
		t.Fatalf("%d tables were counted, %v", counted, err)
	}
}

// TestLockedTable holds that a plan waits no longer than lock_timeout for a table that another session has locked, and names it.
func TestLockedTable(t *testing.T) {
	t.Parallel()
	host := database(t, service)
	locker, err := pgx.Connect(t.Context(), host.ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locker.Close(context.Background()) }()
	if _, err := locker.Exec(t.Context(), "begin; lock table albums", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	separator := "?"
	if strings.Contains(host.DSN, "?") {
		separator = "&"
	}
	cfg := config(t, host, "")
	cfg.Host.DSN += separator + "lock_timeout=100"
	if _, err := adopt.Look(t.Context(), cfg, nil); err == nil || !strings.Contains(err.Error(), "albums") {
		t.Errorf("got %v", err)
	}
}

// TestUncountedTable holds that a table whose rows cannot be counted is undecided, and that the others are not.
func TestUncountedTable(t *testing.T) {
	t.Parallel()
	plan := look(t, database(t, service), head+`links:
  - {from: public.jobs, columns: [payload], to: public.photos, references: [id]}
tables:
  - {table: public.jobs, is: chained, through: "payload->public.photos"}
`)
	if got := table(t, plan, "jobs"); got.Is != adopt.Undecided || !strings.Contains(got.Why, "its rows cannot be counted: ERROR: operator does not exist: bigint = text") {
		t.Errorf("jobs is %s: %s", got.Is, got.Why)
	}
	if got := table(t, plan, "photos"); got.Is != adopt.Chained || got.Looked != 1000 {
		t.Errorf("photos is %s, with %d rows: %s", got.Is, got.Looked, got.Why)
	}
}

// TestShardOfKey holds that SQL and Go agree on the shard of a key.
func TestShardOfKey(t *testing.T) {
	t.Parallel()
	host := database(t, "select 1")
	for _, test := range []struct {
		strategy adopt.Strategy
		keys     []string
		sql      string
	}{
		{adopt.Strategy{By: "modulo"}, []string{"0", "1", "-1", "31341", "-8193", "9223372036854775807", "-9223372036854775808"}, "(%s::bigint)"},
		{adopt.Strategy{By: "hash", Hash: "hex"}, []string{"a", "", "ann@example.org", "ünï", "42", "00000000-0000-4000-8000-000000000001"}, "%s::text"},
	} {
		cfg := shardtest.MapConfig(2048, []shards.Host{{Name: "pg-a", DSN: "host=10.0.0.1"}})
		cfg.Strategy = shards.Strategy{By: test.strategy.By, Hash: test.strategy.Hash}
		m, err := cfg.Map()
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range test.keys {
			want, err := m.ForText(key)
			if err != nil {
				t.Fatal(err)
			}
			expression := test.strategy.Shard(fmt.Sprintf(test.sql, "'"+key+"'"), 2048)
			if got := run(t, host.ConnString(), "select "+expression)[0]; got != fmt.Sprint(want) {
				t.Errorf("%v: key %q is in shard %s by SQL, in %d by Go", test.strategy, key, got, want)
			}
		}
	}
}
