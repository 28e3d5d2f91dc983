package sql_test

import (
	"slices"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// TestUpgradeFromAVersionWithoutTypes takes over a database whose settings have no type_bits.
func TestUpgradeFromAVersionWithoutTypes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	exec(t, b.conn,
		"alter table kiloshard.settings drop column type_bits",
		"update kiloshard.settings set engine = 'old'")
	id := one[shards.ID](t, b.conn, "select shard_00003.next_id()")
	if differences, err := provision.Verify(t.Context(), b.m); err != nil || len(differences) != 1 {
		t.Errorf("before: verify says %v, %v, expected one difference, the version", differences, err)
	}

	// A map with types is another layout, here too.
	c := b.m.Config()
	c.Layout = shards.Layout{Time: 40, Shard: 13, Type: 1, Sequence: 9}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	engine, _ := sql.Engine(params(m))
	refused(t, b.conn, sql.Refused, engine)

	report, err := provision.Create(t.Context(), provision.CreateConfig{Map: b.m})
	if err != nil || report.Created.Len() != 0 {
		t.Fatalf("got %+v, %v, expected 8 shards that existed", report, err)
	}
	if bits := one[int](t, b.conn, "select type_bits from kiloshard.settings"); bits != 0 {
		t.Errorf("got %d bits of type, expected 0", bits)
	}
	if differences, err := provision.Verify(t.Context(), b.m); err != nil || len(differences) != 0 {
		t.Errorf("after: verify says %v, %v", differences, err)
	}
	if next := one[shards.ID](t, b.conn, "select shard_00003.next_id()"); next <= id {
		t.Errorf("ID %d after %d", next, id)
	}
}

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
