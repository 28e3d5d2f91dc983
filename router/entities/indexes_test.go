package entities_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
)

// Open, writers and cleaners refuse a definition that differs from that of the shards, and name what differs.
func TestOtherDefinition(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	other := byLink
	other.Unique = true
	unknown := entities.IndexDefinition{Name: "index_unknown", Properties: byLink.Properties}
	for what, c := range map[string]struct {
		d    entities.Definition
		want string
	}{
		"other shards":   {entities.Definition{Shards: 3, Indexes: definition.Indexes}, "definition of entities: the number of shards is 4, and 3 here"},
		"other index":    {entities.Definition{Shards: 4, Indexes: []entities.IndexDefinition{byUser, other, byEmail, public}}, "definition of index_link: the shard has another one"},
		"index missing":  {entities.Definition{Shards: 4, Indexes: []entities.IndexDefinition{byUser, byLink, public}}, "definition of index_email: all programs must know it"},
		"index too many": {entities.Definition{Shards: 4, Indexes: append([]entities.IndexDefinition{unknown}, definition.Indexes...)}, "definition of index_unknown: it is missing there"},
	} {
		_, err := entities.Open(ctx, b.r, c.d)
		if mismatch := new(entities.DefinitionError); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, expected %s", what, err, c.want)
		}
	}
}

// A program runs since before an index was filled. It cannot write any more, and its cleaner does no work.
func TestOldProgram(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{byUser}})
	put(ctx, t, b.Store, newID(), map[string]any{"link": "a"})
	id := newID()
	put(ctx, t, b.Store, id, map[string]any{"link": "b", "user_id": "ann", "published": 1})
	next := &bundle{b.open(t, definition), b.r}
	for _, index := range definition.Indexes {
		if err := next.Fill(ctx, index.Name, entities.CleanOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	next.agree(ctx, t)
	refused := func(err error) {
		t.Helper()
		mismatch := new(entities.DefinitionError)
		if !errors.As(err, &mismatch) || mismatch.Name == "index_user_id" || !strings.HasPrefix(mismatch.Name, "index_") {
			t.Errorf("got %v, expected a DefinitionError", err)
		}
	}
	refused(b.Put(ctx, id, body(t, map[string]any{"link": "c"})))
	refused(b.Delete(ctx, id))
	dying := b.open(t, definition)
	dying.SetStep(dies(0))
	if err := dying.Put(ctx, id, body(t, map[string]any{"link": "d"})); !errors.Is(err, entities.ErrNotIndexed) {
		t.Error(err)
	}
	b.age(ctx, t)
	refused(b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1}))
	refused(b.NewWalk(1000).Step(ctx))
	next.settle(ctx, t)
	next.agree(ctx, t)
}

// An index is dropped in steps. Nothing happens while a program still writes it.
func TestDrop(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	put(ctx, t, b.Store, id, map[string]any{"link": "a", "user_id": "ann", "published": 1})
	without := entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{byUser, byEmail, public}}
	if err := b.Drop(ctx, "index_link", 0); !errors.Is(err, entities.ErrInUse) {
		t.Errorf("got %v, expected ErrInUse", err)
	}
	if err := b.Release(ctx, "index_link"); err != nil {
		t.Fatal(err)
	}
	next := b.open(t, without)
	put(ctx, t, next, newID(), map[string]any{"link": "b"})
	n := 0
	next.SetStep(func(step string) error {
		if step == "watch" {
			n++
			return b.Put(ctx, id, body(t, map[string]any{"link": fmt.Sprint("c", n)}))
		}
		return nil
	})
	if err := next.Drop(ctx, "index_link", 0); !errors.Is(err, entities.ErrInUse) || n != 1 {
		t.Errorf("got %v, expected ErrInUse", err)
	}
	refused := func() {
		t.Helper()
		mismatch := new(entities.DefinitionError)
		if err := b.Put(ctx, id, body(t, map[string]any{"link": "d"})); !errors.As(err, &mismatch) || mismatch.Name != "index_link" {
			t.Errorf("got %v, expected a DefinitionError", err)
		}
	}
	next.SetStep(func(step string) error {
		if step == "drop" { // the tables are still there
			refused()
		}
		return nil
	})
	if err := next.Drop(ctx, "index_link", 0); err != nil {
		t.Fatal(err)
	}
	refused()
	put(ctx, t, next, id, map[string]any{"link": "d"})
	if err := next.Drop(ctx, "index_link", 0); !errors.Is(err, entities.ErrNoIndex) {
		t.Errorf("got %v, expected ErrNoIndex", err)
	}
}
