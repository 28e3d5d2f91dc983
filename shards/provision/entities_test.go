package provision_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// TestDefinitionsOfEntities: Verify finds a shard whose definition of an index differs from that of the others, or is missing.
func TestDefinitionsOfEntities(t *testing.T) {
	t.Parallel()
	m := created(t, 4)
	d := entities.Definition{Indexes: []entities.IndexDefinition{{Name: "index_link", Properties: []entities.Property{{Name: "link", Type: entities.Text}}}}}
	up, _, _ := strings.Cut(d.Migration(), "---- create above")
	run := func(n shards.Number, text string) {
		t.Helper()
		if _, err := session(t, m.Host(n)).Exec(t.Context(), "set search_path = "+m.SearchPath(n)+"; "+text); err != nil {
			t.Fatal(err)
		}
	}
	for n := range shards.Number(4) {
		run(n, up)
	}
	checkComplete(t, m)
	run(0, `update entity_indexes set definition = '2' where name = 'entities'`)
	run(1, `update entity_indexes set definition = '2' where name = 'entities'`)
	checkComplete(t, m) // the others have no entities
	run(1, `update entity_indexes set definition = 'of yesterday' where name = 'index_link'`)
	run(2, `delete from entity_indexes where name = 'index_link'`)
	run(3, `update entity_indexes set definition = '3' where name = 'entities'`)
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, difference := range differences {
		if difference.Kind != provision.KindEntities {
			t.Errorf("%v", difference)
		}
		found = append(found, difference.Schema+" "+difference.Found)
	}
	if want := []string{
		"shard_00001 definition of index_link is of yesterday", "shard_00002 definition of index_link is missing", "shard_00003 definition of entities is 3",
	}; !slices.Equal(found, want) {
		t.Errorf("found %q, expected %q", found, want)
	}
}
