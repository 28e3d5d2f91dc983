package mapstore_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// through starts a pooler of transactions in front of a database, and returns a DSN that leads through it.
func through(t *testing.T, dsn string) string {
	t.Helper()
	bouncer := pgtest.StartPgBouncer(t, localpg.PgBouncerConfig{DSN: dsn, Settings: map[string]string{"default_pool_size": "2"}})
	return bouncer.DSN(queryOne[string](t, dsn, "select current_database()::text"))
}

// TestPostgresBehindPgBouncer has a pooler of transactions, which loses notifications.
func TestPostgresBehindPgBouncer(t *testing.T) {
	t.Parallel()
	pooled := through(t, newDatabase(t, server))
	one, two := openPostgres(t, pooled), openPostgres(t, pooled)
	w := watch(t, one, 0)
	for version := range 10 {
		swap(t, two, version, version+1)
		_, err := one.Swap(newContext(t), version, newChange(50))
		_ = checkAs[*mapstore.ConflictError](t, err)
	}
	for found := 0; found < 10; {
		found = w.entry(t).Map.Version()
	}
	if all := versions(t, one); len(all) != 10 {
		t.Errorf("%d versions, want 10", len(all))
	}
}

// A DSN may name two poolers, which refuse most settings of a session.
func TestPostgresBehindTwoPgBouncers(t *testing.T) {
	t.Parallel()
	own := newDatabase(t, server)
	one, err := dsn.Parse(through(t, own))
	noError(t, err)
	two := through(t, own)
	other, err := dsn.Parse(two)
	noError(t, err)
	both := dsn.With(two, "host", strings.Join([]string{one.Get("host"), other.Get("host")}, ","), "port", strings.Join([]string{one.Get("port"), other.Get("port")}, ","))
	store := openPostgres(t, both)
	swap(t, store, 0, 1)
	w := watch(t, store, 0)
	checkEntry(t, w.entry(t), 1, 1)
	swap(t, openPostgres(t, both), 1, 2)
	checkEntry(t, w.entry(t), 2, 2)
}
