package mapstore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// notified polls so rarely that a test passes only with notifications.
func notified(o *mapstore.Options) { o.Poll = time.Hour }

const connectionsQuery = `select count(*)::int from pg_stat_activity where datname = current_database() and application_name = 'kiloshard'`

func TestPostgresThousandWatchersOneConnection(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connections of the first store to go", func() bool { return queryOne[int](t, dsn, connectionsQuery) == 0 })

	watched := openPostgres(t, dsn, notified)
	const count = 1000
	var first, done sync.WaitGroup
	first.Add(count)
	ctx := newContext(t)
	for range count {
		done.Go(func() {
			for e, err := range watched.Watch(ctx, 0) {
				if err != nil {
					t.Error(err)
				}
				if err != nil || e.Map.Version() == 2 {
					return
				}
				first.Done()
			}
			t.Error("a watcher never saw version 2")
		})
	}
	first.Wait()
	if n := queryOne[int](t, dsn, connectionsQuery); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	swap(t, openPostgres(t, strings.Replace(dsn, "?", "?application_name=another&", 1)), 1, 2)
	done.Wait()
	eventually(t, "the connection to go with the last watcher", func() bool { return queryOne[int](t, dsn, connectionsQuery) == 0 })
}

func TestPostgresPolls(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	addRow(t, dsn, queryOne[string](t, dsn, "select document from kiloshard.maps")) // without a notification
	checkEntry(t, w.entry(t), 2, 1)
}

func TestPostgresListenerTerminated(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn, notified)
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	for version := 1; version < 4; version++ {
		checkEntry(t, w.entry(t), version, version)
		execSQL(t, dsn, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and (query ilike 'listen%' or query like 'select version, case%')`)
		_ = w.fails(t)
		swap(t, s, version, version+1)
	}
}

func TestPostgresFailingSwapAfterBrokenConnections(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	for version := range 5 {
		swap(t, s, version, version+1)
		load(t, s)
		execSQL(t, dsn, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	}
	execSQL(t, dsn, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	checkEntry(t, load(t, s), 5, 5)
}

func TestPostgresIsOnlyAddedTo(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	swap(t, openPostgres(t, dsn), 0, 1)
	for _, query := range []string{"update kiloshard.maps set why = ''", "delete from kiloshard.maps", "truncate kiloshard.maps"} {
		if err := tryExecSQL(t, dsn, query); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: error %v", query, err)
		}
	}
}

func TestPostgresReader(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	owner := openPostgres(t, dsn)
	role := "reader_of_" + queryOne[string](t, dsn, "select current_database()::text")
	execSQL(t, dsn, "create role "+role+" login password 'sesame'")
	t.Cleanup(func() {
		execSQL(t, dsn, "drop owned by "+role)
		execSQL(t, dsn, "drop role "+role)
	})
	reader := openPostgres(t, localpg.AsRole(dsn, role, "sesame"), notified)
	_, err := reader.Load(newContext(t))
	checkIs(t, err, mapstore.ErrNoMap) // there is no table yet
	if _, err = reader.Swap(newContext(t), 0, newChange(1)); err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) {
		t.Fatalf("error %v of a role that may not create the table", err)
	}
	swap(t, owner, 0, 1)
	execSQL(t, dsn, "grant usage on schema kiloshard to "+role)
	execSQL(t, dsn, "grant select on kiloshard.maps to "+role)
	checkEntry(t, load(t, reader), 1, 1)
	w := watch(t, reader, 0)
	checkEntry(t, w.entry(t), 1, 1)
	_, err = reader.Swap(newContext(t), 1, newChange(2))
	if err == nil || errors.Is(err, mapstore.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("error %v of a role that may only read", err)
	}
	if would := reader.(mapstore.Checker).Check(newContext(t), newChange(2)); would == nil || would.Error() != err.Error() {
		t.Errorf("Check returns %v, and Swap %v", would, err)
	}
	swap(t, owner, 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
	if all := versions(t, reader); len(all) != 2 {
		t.Errorf("%d versions", len(all))
	}

	wrong := openPostgres(t, localpg.AsRole(dsn, role, "open-sesame"))
	if _, err := wrong.Load(newContext(t)); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("error %v of a wrong password", err)
	}
}

func TestPostgresClustersApart(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	w := watch(t, s, 0)
	checkEntry(t, w.entry(t), 1, 1)
	videos := open(t, shards.Config{Cluster: "videos", Store: shards.Store{Kind: shards.StorePostgres, DSN: dsn}})
	next := newChange(7)
	next.Config.Cluster = "videos"
	for from := range 3 {
		if _, err := videos.Swap(newContext(t), from, next); err != nil {
			t.Fatal(err)
		}
	}
	checkEntry(t, load(t, s), 1, 1)
	swap(t, s, 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
	if all := versions(t, s); len(all) != 2 {
		t.Errorf("%d versions", len(all))
	}
	next.Config.Cluster = cluster
	_, err := videos.Swap(newContext(t), 3, next)
	_ = checkAs[*shards.ChangeError](t, err)
	addRow(t, dsn, queryOne[string](t, dsn, "select document from kiloshard.maps where cluster = 'photos' limit 1"))
	_, err = videos.Load(newContext(t))
	if field := checkAs[*shards.FieldError](t, err); field.Field != "cluster" {
		t.Errorf("error %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		store shards.Store
		want  string
	}{
		{"unknown kind", shards.Store{Kind: "paper"}, "store.kind"},
		{"no DSN", shards.Store{Kind: shards.StorePostgres, DSN: "postgres://app:sesame/x@h/app"}, "dsn"},
		{"no path", shards.Store{}, "path"},
	} {
		_, err := mapstore.Open(context.Background(), shards.Config{Cluster: cluster, Store: test.store}, mapstore.Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
	}
}
