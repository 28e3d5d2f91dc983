package mapstore_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// A control database is restored from a backup, and changed up to the version that services have. They report that
// their map is not the current one until there is a newer one.
func TestSourceOfARestoredStore(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	for i := range 3 {
		swap(t, s, i, i+1)
	}
	source := newSource(s, "")
	m, err := source.Load(newContext(t))
	if err != nil {
		t.Fatal(err)
	}
	found := make(chan *shards.Map, 1)
	go func() {
		defer close(found)
		for m, err := range source.Watch(newContext(t), m.Version()) {
			if err == nil {
				found <- m
				return
			}
		}
	}()
	eventually(t, "a connection to listen", func() bool { return queryOne[int](t, dsn, listenersQuery) == 1 })
	execSQL(t, dsn, `do $$ begin
	alter table kiloshard.maps disable trigger keep_maps;
	update kiloshard.maps set document = replace(document, 'weight: 3', 'weight: 30') where version = 3;
	alter table kiloshard.maps enable trigger keep_maps;
end $$`)
	execSQL(t, dsn, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	eventually(t, "the source to see that the store holds another version 3", func() bool {
		_, why := source.Stale()
		var back *mapstore.WentBackError
		return errors.As(why, &back) && back.Seen == 3 && back.Found == 3
	})
	swap(t, s, 3, 4)
	if m := <-found; m == nil || m.Version() != 4 || markOf(m) != 4 {
		t.Errorf("map %v", m)
	}
	checkStale(t, source, false)
}

const listenersQuery = `select count(*)::int from pg_stat_activity where datname = current_database() and query like 'select version, case%'`
