package entities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
)

// Two workers fill a new index while writers write. One worker is stopped and starts again.
func TestFill(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	b.each(ctx, t, `update entity_indexes set required = name = 'entities', filled = name = 'entities'`)
	old := b.open(t, entities.Definition{Shards: shardCount, Indexes: []entities.IndexDefinition{byUser}})
	var ids []entities.ID
	for i := range 60 {
		ids = append(ids, newID())
		put(ctx, t, old, ids[i], map[string]any{"user_id": fmt.Sprint(i % 7), "published": i, "link": fmt.Sprint(i % 9)})
	}
	// Errors that an index may have.
	b.each(ctx, t, `insert into index_link values ('nowhere', gen_random_uuid(), 1), ('3', gen_random_uuid(), 1)`)

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
	b.each(ctx, t, `update entity_indexes set taken = null`) // the time of the stopped worker has passed
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

// Entities have the same value before a unique index is added, or one that is too long. One of them gets a row, and Fill fails,
// until they are changed.
func TestFillOfWhatIsNotUnique(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, entities.Definition{Shards: shardCount})
	var ids []entities.ID
	for range 3 {
		ids = append(ids, newID())
		put(ctx, t, b.Store, ids[len(ids)-1], map[string]any{"email": "ann"})
	}
	long := newID()
	put(ctx, t, b.Store, long, map[string]any{"email": strings.Repeat("x", 2001)})
	s := b.open(t, definition)
	if err := s.Fill(ctx, "index_email", entities.CleanOptions{}); !errors.Is(err, entities.ErrNotFilled) || !errors.Is(err, entities.ErrTaken) && !errors.Is(err, entities.ErrTooLong) {
		t.Errorf("got %v, expected ErrNotFilled", err)
	}
	all, err := s.Index("index_email").GetAll(ctx, "ann", entities.Page{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d entities, %v, expected one", len(all), err)
	}
	filled := func(want bool) {
		t.Helper()
		indexes, err := s.Indexes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range indexes {
			if i.Name == "index_email" && i.Filled != want {
				t.Errorf("%+v, expected filled: %v", i, want)
			}
		}
	}
	filled(false)
	for i, id := range append(ids, long) {
		if id != all[0].ID {
			put(ctx, t, s, id, map[string]any{"email": fmt.Sprint(i)})
		}
	}
	b.each(ctx, t, `update entity_indexes set taken = null`)
	if err := s.Fill(ctx, "index_email", entities.CleanOptions{}); err != nil {
		t.Error(err)
	}
	filled(true)
}

// A table of an index is dropped and created again: the next Fill begins with the newest entity in all shards.
func TestFillOfATableMadeAgain(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	for i := range 40 {
		put(ctx, t, b.Store, newID(), map[string]any{"link": fmt.Sprint(i)})
	}
	if err := b.Fill(ctx, "index_link", entities.CleanOptions{}); err != nil {
		t.Fatal(err)
	}
	up, down, _ := strings.Cut(byLink.Migration(), "---- create above / drop below ----")
	shard, err := b.r.ForShard(2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shard.Exec(ctx, down+up); err != nil {
		t.Fatal(err)
	}
	if err := b.Fill(ctx, "index_link", entities.CleanOptions{}); err != nil {
		t.Fatal(err)
	}
	b.agree(ctx, t)
}

// A cleaner finds due work and reports its lag.
func TestCleanGoesOn(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	dying := b.open(t, definition)
	dying.SetStep(dies(0))
	if err := dying.Put(ctx, newID(), body(t, map[string]any{"link": "a"})); !errors.Is(err, entities.ErrNotIndexed) {
		t.Errorf("got %v, expected ErrNotIndexed", err)
	}
	if err := dying.Put(ctx, newID(), body(t, map[string]any{"email": "a"})); !errors.Is(err, errKilled) {
		t.Errorf("got %v, expected the end", err)
	}
	b.age(ctx, t)
	if lag, err := b.Lag(ctx); err != nil || lag.Waiting != 2 || lag.Oldest <= 0 || lag.Ahead != 0 {
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
