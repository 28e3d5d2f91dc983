package provision_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

func upgrade(t *testing.T, m *shards.Map, dryRun bool) provision.UpgradeReport {
	t.Helper()
	report, err := provision.Upgrade(t.Context(), provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: m, Batch: 1, DryRun: dryRun}})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// everything identifies the functions and comments that exist, and the transactions that created them.
const everything = `
	select string_agg(o, ',' order by o) from (
		select p.oid || ' ' || p.xmin from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname ~ '^(kiloshard|shard_)'
		union all select d.objoid || ' ' || d.description from pg_description d where d.description like 'kiloshard%'
	) as found (o)`

// TestUpgrade starts from the objects of the previous release, while sessions write.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	m := before(t)
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	// Each shard has four: itself, two generators, a directory. Each host has three: helper schema, ledger, uuidv7. One
	// is a row.
	if len(differences) != 8*4+2*3+1 {
		t.Errorf("%d differences before, expected 39: %v", len(differences), differences)
	}
	for _, d := range differences {
		if d.Kind != provision.KindOld {
			t.Errorf("before: %s, expected an old version", d)
		}
	}
	untouched := on(t, m.Hosts()[0], everything)
	want := provision.UpgradeReport{Helpers: []string{"pg-a", "pg-b"}, Upgraded: m.All()}
	check := func(when string, got provision.UpgradeReport) {
		t.Helper()
		if !slices.Equal(got.Helpers, want.Helpers) || got.Upgraded.String() != want.Upgraded.String() ||
			got.Current.String() != want.Current.String() || got.Missing.String() != want.Missing.String() {
			t.Errorf("%s: got %+v, expected %+v", when, got, want)
		}
	}
	check("dry run", upgrade(t, m, true))
	if got := on(t, m.Hosts()[0], everything); got[0] != untouched[0] {
		t.Error("a dry run changed something")
	}

	stop := write(t, m)
	check("upgrade", upgrade(t, m, false))
	stop()
	checkComplete(t, m)

	untouched = on(t, m.Hosts()[0], everything)
	on(t, m.Hosts()[1], "drop schema shard_00006 cascade")
	want = provision.UpgradeReport{Current: shards.SetOf(0, 1, 2, 3, 4, 5, 7), Missing: shards.SetOf(6)}
	check("a second upgrade", upgrade(t, m, false))
	if got := on(t, m.Hosts()[0], everything); got[0] != untouched[0] {
		t.Error("a second upgrade changed something")
	}
}

// write runs a session for each shard that inserts rows with default IDs, in transactions that stay open for a while.
// The returned function ends them, and checks that all succeeded and that the IDs rise.
func write(t *testing.T, m *shards.Map) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	inserted := make(chan struct{}, m.Len())
	for n := range m.All().All() {
		conn := session(t, m.Host(n))
		wg.Go(func() {
			insert := "insert into " + m.Schema(n) + ".photos default values returning id"
			var last int64
			for first := true; ; first = false {
				for range 3 {
					var id int64
					if err := conn.QueryRow(t.Context(), insert, pgx.QueryExecModeExec).Scan(&id); err != nil || id <= last {
						t.Errorf("shard %d: ID %d after %d, %v", n, id, last, err)
						return
					}
					last = id
				}
				if first {
					inserted <- struct{}{}
				}
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
	}
	for range m.Len() {
		<-inserted
	}
	return func() {
		close(done)
		wg.Wait()
	}
}

// TestUpgradeUnderAStatement: a statement planned before an upgrade may still call functions of the old engine. So an
// upgrade drops no function, and functions that the new engine does not use make IDs as the new ones do.
func TestUpgradeUnderAStatement(t *testing.T) {
	t.Parallel()
	m := before(t)
	const functions = "select oid || ' ' || proname from pg_proc where pronamespace in ('kiloshard'::regnamespace, 'shard_00000'::regnamespace)"
	were := on(t, m.Hosts()[0], functions)
	upgrade(t, m, false)
	are := on(t, m.Hosts()[0], functions)
	for _, function := range were {
		if !slices.Contains(are, function) {
			t.Errorf("the upgrade dropped the function with OID and name %s", function)
		}
	}
	conn := session(t, m.Hosts()[0])
	const draws = `
		with drawn as materialized (select nextval('shard_00000.next_id_seq') as v, pg_sleep(0.05))
		select v, %s, currval('shard_00000.next_id_seq') from drawn`
	for _, call := range []string{
		"kiloshard.id_shard(kiloshard.id_of(0, 'shard_00000.next_id_seq', v, date_part('epoch', clock_timestamp())))",
		"kiloshard.catch_up(0, 'shard_00000.next_id_seq', v, 3) * 0",
	} {
		var v, got, last int64
		if err := conn.QueryRow(t.Context(), fmt.Sprintf(draws, call)).Scan(&v, &got, &last); err != nil || got != 0 || last <= v {
			t.Errorf("%s: got %d and the sequence at %d after %d, error %v; expected 0 and a higher value", call, got, last, v, err)
		}
	}
	definers := "select proname from pg_proc where pronamespace = 'kiloshard'::regnamespace and prosecdef and pronargs = 4 and proname in ('id_of', 'catch_up')"
	if got := on(t, m.Hosts()[0], definers); len(got) > 0 {
		t.Errorf("%v of the release before still moves sequences with its owner's rights", got)
	}
	checkComplete(t, m)
}

// TestUpgradeUnderWriters has a session read the ledger in a transaction, for which a change of the ledger's table
// must wait. Writers to the ledger must not wait until that session is done.
func TestUpgradeUnderWriters(t *testing.T) {
	t.Parallel()
	m := before(t)
	host := m.Hosts()[0]
	reader := session(t, host)
	if _, err := reader.Exec(t.Context(), "begin; select from kiloshard.ledger"); err != nil {
		t.Fatal(err)
	}
	upgraded := make(chan error, 1)
	go func() {
		_, err := provision.Upgrade(t.Context(), provision.UpgradeConfig{CreateConfig: provision.CreateConfig{Map: m}})
		upgraded <- err
	}()
	watcher := session(t, host)
	for waiting := false; !waiting; {
		const query = `select exists (select from pg_locks where not granted and relation = 'kiloshard.ledger'::regclass)`
		if err := watcher.QueryRow(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const entry = `insert into kiloshard.ledger (run, who, shard, version, file, direction, checksum, began, took, current)
		values ('r', 'w', 0, 1, 'f', 'up', 'c', now(), '1s', true)`
	if _, err := watcher.Exec(limited, entry); err != nil {
		t.Fatalf("a writer behind the upgrade: %v", err)
	}
	select {
	case err := <-upgraded:
		t.Fatalf("upgraded while the table was in use: %v", err)
	default:
	}
	if _, err := reader.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-upgraded; err != nil {
		t.Fatal(err)
	}
	checkComplete(t, m)
}

// TestInterruptedUpgradeContinues: Create also completes an interrupted Upgrade.
func TestInterruptedUpgradeContinues(t *testing.T) {
	t.Parallel()
	m := before(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := provision.CreateConfig{Map: m, Batch: 1, PerHost: 1, Progress: &interrupting{left: 2, cancel: cancel}}
	report, err := provision.Upgrade(ctx, provision.UpgradeConfig{CreateConfig: cfg})
	if err == nil || report.Upgraded.Len() < 2 || report.Upgraded.Len() == 8 {
		t.Fatalf("got %+v, %v, expected some shards", report, err)
	}
	rest := create(t, m)
	if rest.Upgraded.Len() != 8-report.Upgraded.Len() || rest.Created.Len() != 0 || rest.Existed.String() != report.Upgraded.String() {
		t.Errorf("create: got %+v after %s", rest, report.Upgraded)
	}
	checkComplete(t, m)
}

// A function changed by hand is not reported as an old version, and an old version not as changed.
func TestChangedIsNotOld(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Hosts()[0], `create or replace function shard_00002.next_ids(n int) returns setof bigint language sql as $$ select 1::bigint $$`)
	on(t, m.Hosts()[0], `comment on function shard_00003.next_id() is 'kiloshard version 0123456789abcdef'`)
	differences, err := provision.Verify(t.Context(), m)
	if err != nil || len(differences) != 2 {
		t.Fatalf("got %v, %v, expected two differences", differences, err)
	}
	if d := differences[0]; d.Kind != provision.KindFunction || d.Schema != "shard_00002" {
		t.Errorf("got %s, expected a function", d)
	}
	if d := differences[1]; d.Kind != provision.KindOld || d.Schema != "shard_00003" || !strings.Contains(d.Found, "0123456789abcdef") {
		t.Errorf("got %s, expected an old version", d)
	}
}
