package sql_test

import (
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// TestLayoutMayChangeBeforeThereAreShards leaves no function of the old layout behind.
func TestLayoutMayChangeBeforeThereAreShards(t *testing.T) {
	t.Parallel()
	c := shardtest.MapConfig(8, shardtest.Hosts(t, 1))
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, m)
	const functions = `
		select p.oid::regprocedure::text || ' ' || p.prorettype::regtype::text from pg_catalog.pg_proc p
		where p.pronamespace = 'kiloshard'::regnamespace order by 1`
	seen := map[shards.Layout][]string{}
	for _, layout := range []shards.Layout{shards.DefaultLayout, pinterest, typed, shards.DefaultLayout, typed, pinterest} {
		c.Layout = layout
		m, err := c.Map()
		if err != nil {
			t.Fatal(err)
		}
		engine, _ := sql.Engine(params(m))
		exec(t, conn, engine)
		got := several[string](t, conn, functions)
		if first, ok := seen[layout]; ok && !slices.Equal(got, first) {
			t.Errorf("layout %s has the functions\n%q, expected\n%q", layout, got, first)
		}
		seen[layout] = got
	}
	if slices.Equal(seen[pinterest], seen[typed]) || slices.Equal(seen[typed], seen[shards.DefaultLayout]) {
		t.Error("different layouts have the same functions")
	}
}
