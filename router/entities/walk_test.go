package entities_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
)

// Index rows are lost, and others appear, without any row in entity_work. The cleaner finds both.
func TestLostRows(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	for i := range 30 {
		put(ctx, t, b.Store, newID(), map[string]any{"user_id": fmt.Sprint(i % 3), "published": i, "link": fmt.Sprint(i), "email": fmt.Sprint(i), "public": true, "score": i})
	}
	b.each(ctx, t, `delete from index_user_id where published % 2 = 0; delete from index_link; delete from index_email; delete from index_public where score < 7;
		insert into index_link values ('nowhere', gen_random_uuid(), 1); insert into index_email select link || ' of nobody', entity_id, 1 from index_link`)
	b.walk(ctx, t)
	b.agree(ctx, t)
	if s := b.Stats(); s.Walked != 30 || s.Checked == 0 {
		t.Errorf("counts %+v, expected 30 entities", s)
	}
}

// An entity has several rows of an index of arrays in one shard. The walk keeps them all.
func TestWalkOfArrays(t *testing.T) {
	t.Parallel()
	byTag := entities.IndexDefinition{Name: "index_tag", Properties: []entities.Property{{Name: "tags", Type: entities.Text, Each: true}}}
	d := entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{byTag}}
	b, ctx := setupOf(t, d, d)
	var tags []string
	for i := range 5 * shardCount {
		tags = append(tags, fmt.Sprint(i))
	}
	put(ctx, t, b.Store, newID(), map[string]any{"tags": tags})
	b.walk(ctx, t)
	for _, tag := range tags {
		if all, err := b.Index("index_tag").GetAll(ctx, tag, entities.Page{}); err != nil || len(all) != 1 {
			t.Errorf("%s: %d entities, %v, expected one", tag, len(all), err)
		}
	}
	if s := b.Stats(); s.Removed > 0 {
		t.Errorf("counts %+v, expected none removed", s)
	}
}

// In each shard an entity lacks its row in a unique index, because another entity has the value. The walk reports all of them.
func TestWalkBeyondDuplicates(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	for n := range shards.Number(shardCount) {
		for range 2 {
			id := newID()
			for shards.MD5Shard(id[:], shardCount) != n {
				id = newID()
			}
			b.each(ctx, t, `delete from index_email`)
			put(ctx, t, b.Store, id, map[string]any{"email": fmt.Sprint(n)})
		}
	}
	reported := 0
	if err := b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: 1_000_000, Log: func(err error) {
		reported += strings.Count(err.Error(), entities.ErrTaken.Error())
	}}); err != nil {
		t.Fatal(err)
	}
	if reported != shardCount {
		t.Errorf("%d reported, expected %d", reported, shardCount)
	}
}

// An entity changes after the walk has read it and before the walk adds a row that was lost. The walk removes that row.
func TestWalkBesideAWriter(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	put(ctx, t, b.Store, id, map[string]any{"link": "a"})
	b.each(ctx, t, `delete from index_link`)
	s, changed := b.open(t, definition), false
	s.SetStep(func(step string) error {
		if step == "walk" && !changed {
			changed = true
			put(ctx, t, b.Store, id, map[string]any{"link": "b"})
		}
		return nil
	})
	w := s.NewWalk(1)
	for range 2 * shardCount {
		if err := w.Step(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if !changed {
		t.Error("the walk has read nothing")
	}
	b.agree(ctx, t)
}

// An entity changes after the walk has read it, and another one gets its value. That is no duplicate.
func TestWalkBesideAChangeOfHands(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	put(ctx, t, b.Store, id, map[string]any{"email": "a"})
	s, changed := b.open(t, definition), false
	s.SetStep(func(step string) error {
		if step == "walk" && !changed {
			changed = true
			put(ctx, t, b.Store, id, map[string]any{"email": "b"})
			put(ctx, t, b.Store, newID(), map[string]any{"email": "a"})
		}
		return nil
	})
	w := s.NewWalk(1)
	for range 2 * shardCount {
		if err := w.Step(ctx); err != nil {
			t.Error(err)
		}
	}
	if !changed {
		t.Error("the walk has read nothing")
	}
	b.agree(ctx, t)
}

// The walk of a cleaner continues from pass to pass, with a few entities each, and begins with the newest change.
func TestSlowWalk(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, entities.Definition{Shards: 1, Indexes: []entities.IndexDefinition{byLink}})
	var ids []entities.ID
	for i := range 10 {
		ids = append(ids, newID())
		put(ctx, t, b.Store, ids[i], map[string]any{"link": fmt.Sprint(i)})
	}
	b.each(ctx, t, `delete from index_link`)
	if err := b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: 4}); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		all, err := b.Index("index_link").GetAll(ctx, fmt.Sprint(i), entities.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if found := len(all) == 1 && all[0].ID == id; found != (i >= 6) {
			t.Errorf("entity %d found: %v, expected the newest four", i, found)
		}
	}
}

// After a failover of a host the walk begins again with the newest change.
func TestWalkAfterFailover(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, entities.Definition{Shards: 1, Indexes: []entities.IndexDefinition{byLink}})
	for i := range 10 {
		put(ctx, t, b.Store, newID(), map[string]any{"link": fmt.Sprint(i)})
	}
	w := b.NewWalk(4)
	step := func(want int) {
		t.Helper()
		if err := w.Step(ctx); err != nil {
			t.Fatal(err)
		}
		if all, err := b.Index("index_link").GetAll(ctx, "9", entities.Page{}); err != nil || len(all) != want {
			t.Errorf("%d entities, %v, expected %d", len(all), err, want)
		}
	}
	step(1)
	b.each(ctx, t, `delete from index_link where link = '9'`)
	step(0)
	w.FailOver()
	step(1)
}

// Work whose time is in the future is due at once, and the lag says so. It also has the last error.
func TestClockStepsBack(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	dying := b.open(t, definition)
	dying.SetStep(dies(0))
	_ = dying.Put(ctx, newID(), body(t, map[string]any{"link": "a"}))
	b.each(ctx, t, `update entity_work set begun = now() + interval '1 hour'`)
	if lag, err := b.Lag(ctx); err != nil || lag.Waiting != 1 || lag.Ahead <= 0 {
		t.Errorf("lag %+v, %v, expected one that is ahead", lag, err)
	}
	b.each(ctx, t, `alter table index_link rename to elsewhere`)
	if err := b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1}); err == nil {
		t.Error("no error without a table")
	}
	if lag, err := b.Lag(ctx); err != nil || lag.Waiting != 1 || !strings.Contains(lag.Error, "index_link") {
		t.Errorf("lag %+v, %v, expected one with its error", lag, err)
	}
	b.each(ctx, t, `alter table elsewhere rename to index_link; update entity_work set taken = now() + interval '1 hour'`)
	if err := b.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1}); err != nil {
		t.Error(err)
	}
	b.agree(ctx, t)
}
