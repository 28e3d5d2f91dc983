package entities_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
)

type (
	userName string
	authorID int32
)

// Properties may have capitals, be in inner objects, be arrays and times. Predicates may ask for null. Values of queries may have
// types of the program.
func TestProperties(t *testing.T) {
	t.Parallel()
	d := entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{
		{Name: "by_author", Properties: []entities.Property{{Name: "author.id", Type: entities.Int}, {Name: "createdAt", Type: entities.Time}}},
		{Name: "by_tag", Properties: []entities.Property{{Name: "tags", Type: entities.Text, Each: true}, {Name: "createdAt", Type: entities.Time}}},
		{Name: "by_user", Properties: []entities.Property{{Name: "userName", Type: entities.Text}}, Where: map[string]any{"deletedAt": nil, "author.active": true}},
		{Name: "by_id", Properties: []entities.Property{{Name: "otherId", Type: entities.Int}}, Unique: true},
		{Name: "by_time", Properties: []entities.Property{{Name: "createdAt", Type: entities.Time}}},
	}}
	b, ctx := setupOf(t, d, d)
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	fields := func(more map[string]any) map[string]any {
		all := map[string]any{
			"author": map[string]any{"id": 7, "active": true}, "createdAt": at, "tags": []any{"a", "b", "a", 3}, "userName": "ann", "otherId": shards.ID(1 << 60),
		}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	id, later := newID(), newID()
	put(ctx, t, b.Store, id, fields(nil))
	put(ctx, t, b.Store, later, fields(map[string]any{
		"createdAt": at.Add(time.Second), "deletedAt": nil, "otherId": 2, "tags": []any{"b"}, "author": map[string]any{"id": "7", "active": false},
	}))
	find := func(name string, lead any, page entities.Page, want ...entities.ID) {
		t.Helper()
		all, err := b.Index(name).GetAll(ctx, lead, page)
		var got []entities.ID
		for _, e := range all {
			got = append(got, e.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s of %v: %x, %v, expected %x", name, lead, got, err, want)
		}
	}
	all := func() {
		t.Helper()
		find("by_author", authorID(7), entities.Page{}, id, later)
		find("by_author", 7, entities.Page{From: at.Add(time.Millisecond)}, later)
		find("by_author", 7, entities.Page{To: at.Add(time.Millisecond), Falling: true}, id)
		find("by_tag", userName("a"), entities.Page{}, id)
		find("by_tag", "b", entities.Page{}, id, later)
		find("by_user", userName("ann"), entities.Page{}, id)
		find("by_id", shards.ID(1<<60), entities.Page{}, id)
		find("by_time", at, entities.Page{}, id)
	}
	all()
	first, next, err := b.Index("by_tag").Page(ctx, "b", entities.Page{Limit: 1})
	if err != nil || len(first) != 1 || first[0].ID != id {
		t.Errorf("page of %d, %v", len(first), err)
	}
	if second, _, err := b.Index("by_tag").Page(ctx, "b", entities.Page{Limit: 1, After: next}); err != nil || len(second) != 1 || second[0].ID != later {
		t.Errorf("second page of %d, %v", len(second), err)
	}
	for _, index := range d.Indexes {
		b.each(ctx, t, `delete from `+index.Name)
		if err := b.Fill(ctx, index.Name, entities.CleanOptions{}); err != nil {
			t.Error(err)
		}
	}
	all()
	put(ctx, t, b.Store, id, fields(map[string]any{"tags": []any{"c"}, "deletedAt": "now"}))
	find("by_tag", "a", entities.Page{})
	find("by_tag", "c", entities.Page{}, id)
	find("by_user", "ann", entities.Page{})
	if _, err := b.Index("by_author").GetAll(ctx, userName("7"), entities.Page{}); err == nil {
		t.Error("no error for a text instead of a number")
	}
	if err := b.Delete(ctx, id); err != nil {
		t.Error(err)
	}
	for _, index := range d.Indexes {
		if err := b.Fill(ctx, index.Name, entities.CleanOptions{}); err != nil {
			t.Error(err)
		}
	}
	if s := b.Stats(); s.Taken > 0 {
		t.Errorf("counts %+v", s)
	}
}
