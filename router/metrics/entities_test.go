package metrics_test

import (
	"testing"
	"testing/fstest"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/metrics"
)

// TestCleaner shows what a writer has left behind, until a cleaner has done it.
func TestCleaner(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 2, nil)
	d := entities.Definition{Shards: 1, Indexes: []entities.IndexDefinition{
		{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}},
	}}
	files := fstest.MapFS{"001_photos.sql": migrations["001_photos.sql"], "002_entities.sql": {Data: []byte(d.Migration())}}
	if _, err := migrate.Up(ctx, migrate.Config{Map: b.Map(), Files: files}); err != nil {
		t.Fatal(err)
	}
	store, err := entities.Open(ctx, b.Router, d)
	if err != nil {
		t.Fatal(err)
	}
	b.registry.MustRegister(metrics.Cleaner(b.Router, store))
	is := func(name string, want float64) {
		t.Helper()
		if got := b.value(t, name, "cluster", b.Map().Config().Cluster); got != want {
			t.Errorf("%s is %v, expected %v", name, got, want)
		}
	}
	rename := func(from, to string) {
		t.Helper()
		if _, err := b.shard(t, 0).Exec(ctx, "alter table "+from+" rename to "+to); err != nil {
			t.Fatal(err)
		}
	}
	rename("entity_work", "no_work")
	is("entity_work_unknown", 1) // there is no such table
	is("entity_work_waiting", -1)
	rename("no_work", "entity_work")
	const left = `with made as (insert into entities (id, body) values (gen_random_uuid(), '{"link": "a"}') returning id, version)
		insert into entity_work (version, entity_id, state, after, begun)
			select version, id, 'written', '{"link": "a"}', now() - interval '1 hour' from made`
	if _, err := b.shard(t, 0).Exec(ctx, left); err != nil {
		t.Fatal(err)
	}
	is("entity_work_unknown", 0)
	is("entity_work_waiting", 1)
	if lag := b.value(t, "entity_work_lag_seconds"); lag < 3600 {
		t.Errorf("a lag of %v s, expected an hour", lag)
	}
	is("entities_repaired_total", 0)
	if err := store.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1}); err != nil {
		t.Fatal(err)
	}
	is("entity_work_waiting", 0)
	is("entity_work_lag_seconds", 0)
	is("entity_work_ahead_seconds", 0)
	is("entities_repaired_total", 1)
	is("entity_index_rows_added_total", 1)
	is("entity_index_rows_removed_total", 0)
	is("entities_filled_total", 0)
	is("entities_compared_total", 0)
}
