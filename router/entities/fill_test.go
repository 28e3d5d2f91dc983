package entities_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
)

// Two workers fill a new index while writers write. One worker is stopped and starts again.
func TestFill(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	old := b.open(t, entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{byUser}})
	var ids []entities.ID
	for i := range 60 {
		ids = append(ids, newID())
		put(ctx, t, old, ids[i], map[string]any{"user_id": fmt.Sprint(i % 7), "published": i, "link": fmt.Sprint(i % 9)})
	}
	// Errors that an index may have.
	b.each(ctx, t, `insert into index_link values ('nowhere', gen_random_uuid()), ('3', gen_random_uuid())`)

	var all sync.WaitGroup
	stop, cancel := context.WithCancel(ctx)
	all.Go(func() {
		for i := range 30 {
			if err := b.Put(ctx, ids[i*2], body(t, map[string]any{"user_id": "new", "published": i, "link": fmt.Sprint("new", i%3)})); err != nil {
				t.Error(err)
			}
			if i == 10 {
				cancel()
			}
		}
	})
	all.Go(func() {
		for range 2 {
			if err := b.Fill(stop, "index_link", entities.CleanOptions{}); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
	all.Wait()
	b.each(ctx, t, `update entity_fills set due = '-infinity'`) // the time of the stopped worker has passed
	for _, name := range []string{"index_link", "index_email", "index_public"} {
		if err := b.Fill(ctx, name, entities.CleanOptions{PerSecond: 1_000_000}); err != nil {
			t.Fatal(err)
		}
	}
	b.agree(ctx, t)
	if s := b.Stats(); s.Filled == 0 || s.Checked == 0 || s.Removed == 0 {
		t.Errorf("counts %+v, expected some of each", s)
	}
	if err := b.Fill(ctx, "index_x", entities.CleanOptions{}); !errors.Is(err, entities.ErrNoIndex) {
		t.Errorf("got %v, expected ErrNoIndex", err)
	}
}

// Two entities have the same value before a unique index is added: one of them gets the row.
func TestFillOfWhatIsNotUnique(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	old := b.open(t, entities.Definition{Shards: shardCount})
	for range 3 {
		put(ctx, t, old, newID(), map[string]any{"email": "ann"})
	}
	if err := b.Fill(ctx, "index_email", entities.CleanOptions{}); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Index("index_email").GetAll(ctx, "ann", entities.Page{}); err != nil || len(all) != 1 {
		t.Errorf("%d entities, %v, expected one", len(all), err)
	}
}

// A cleaner finds due work and reports its lag. A writer that was suspended for too long leaves its rows to the cleaner.
func TestCleanGoesOn(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	slow := b.open(t, definition)
	slow.SetGrace(0) // its time is over at once
	if err := slow.Put(ctx, newID(), body(t, map[string]any{"link": "a"})); !errors.Is(err, entities.ErrNotIndexed) {
		t.Errorf("got %v, expected ErrNotIndexed", err)
	}
	if err := slow.Put(ctx, newID(), body(t, map[string]any{"email": "a"})); err == nil {
		t.Error("an entity was written although its rows in unique indexes were late")
	}
	if lag, err := b.Lag(ctx); err != nil || lag.Waiting != 2 || lag.Oldest <= 0 {
		t.Errorf("lag %v, %v, expected 2 waiting", lag, err)
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	var cleaners sync.WaitGroup
	for range 2 {
		cleaners.Go(func() {
			if err := b.Clean(run, entities.CleanOptions{Interval: 1, PerSecond: 1000}); err != nil {
				t.Error(err)
			}
		})
	}
	soon(ctx, t, func() bool {
		lag, err := b.Lag(ctx)
		return err == nil && lag.Waiting == 0 && b.Stats().Repaired == 2
	})
	stop()
	cleaners.Wait()
	b.agree(ctx, t)
}
