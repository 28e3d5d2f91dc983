package entities_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/shards"
)

var errKilled = errors.New("killed")

// dies returns a step that fails at a writer's n-th write, counted from 0, and at all later ones.
func dies(n int64) func(string) error {
	var done atomic.Int64
	return func(string) error {
		if done.Add(1) > n {
			return errKilled
		}
		return nil
	}
}

// Writers die between any two of their writes, KILLS times (100 by default), while others write and read the same entities.
// No query ever returns an entity that does not match. After the cleaner has run, indexes and entities agree exactly.
func TestKills(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	kills := 100
	if text := os.Getenv("KILOSHARD_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const people, writers = 40, 8
	ids := make([]entities.ID, people)
	for i := range ids {
		ids[i] = newID()
	}
	random := func() map[string]any {
		return map[string]any{
			"user_id": fmt.Sprint(rand.IntN(5)), "published": rand.IntN(3), "link": fmt.Sprint(rand.IntN(5)),
			"email": fmt.Sprint(rand.IntN(60)), "score": rand.IntN(4), "public": rand.IntN(2) == 0,
		}
	}
	var died, done atomic.Int64
	var writing, reading sync.WaitGroup
	ended, end := context.WithCancel(ctx)
	for range writers {
		writing.Go(func() {
			for int(died.Load()) < kills && ctx.Err() == nil {
				s := b.open(t, definition)
				s.SetStep(dies(rand.Int64N(9)))
				id := ids[rand.IntN(people)]
				var err error
				if rand.IntN(5) == 0 {
					err = s.Delete(ctx, id)
				} else {
					err = s.Put(ctx, id, body(t, random()))
				}
				switch {
				case errors.Is(err, errKilled), errors.Is(err, entities.ErrNotIndexed) && strings.Contains(err.Error(), errKilled.Error()):
					died.Add(1)
				case err == nil:
					done.Add(1)
				case !errors.Is(err, entities.ErrTaken) && !errors.Is(err, entities.ErrNotFound):
					t.Error(err)
				}
			}
		})
	}
	reading.Go(func() {
		for ended.Err() == nil {
			matches(ctx, t, b.Store, fmt.Sprint(rand.IntN(5)))
		}
	})
	reading.Go(func() { // a cleaner takes the work of some entities at the same time, also that of writers that live
		for ended.Err() == nil {
			b.each(ctx, t, `update entity_work set begun = now() - interval '1 hour', taken = null where version in (
				select version from entity_work where entity_id = '`+fmt.Sprintf("%x", ids[rand.IntN(people)])+`' for update skip locked)`)
			if err := b.Clean(ctx, entities.CleanOptions{Once: true}); err != nil {
				t.Error(err)
			}
		}
	})
	writing.Wait()
	end()
	reading.Wait()
	b.settle(ctx, t)
	b.walk(ctx, t)
	b.agree(ctx, t)
	t.Logf("%d writers died, %d did not: %+v", died.Load(), done.Load(), b.Stats())
}

// matches fails the test if a query returns an entity that does not match.
func matches(ctx context.Context, t *testing.T, s *entities.Store, value string) {
	for name, property := range map[string]string{"index_user_id": "user_id", "index_link": "link", "index_email": "email"} {
		all, err := s.Index(name).GetAll(ctx, value, entities.Page{})
		if err != nil {
			t.Error(err)
		}
		for i, e := range all {
			if got := field(e.Body, property); got != value {
				t.Errorf("%s of %s returns %s", name, value, e.Body)
			}
			for _, other := range all[:i] {
				if other.ID == e.ID {
					t.Errorf("%s of %s returns %x twice", name, value, e.ID)
				}
			}
		}
	}
}

// A writer finds that its entity has changed, and dies while it repairs the index.
func TestKillWhileRepairing(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	s := b.open(t, definition)
	var done []string
	s.SetStep(func(step string) error {
		done = append(done, step)
		switch len(done) {
		case 2: // its own row is written
			return b.Put(ctx, id, body(t, map[string]any{"link": "of another"}))
		case 4:
			return errKilled
		}
		return nil
	})
	if err := s.Put(ctx, id, body(t, map[string]any{"link": "a"})); !errors.Is(err, entities.ErrNotIndexed) {
		t.Errorf("got %v after %v, expected ErrNotIndexed", err, done)
	}
	if want := []string{"write", "finish", "release", "remove"}; !slices.Equal(done, want) {
		t.Errorf("steps %v, expected %v", done, want)
	}
	b.settle(ctx, t)
	b.agree(ctx, t)
}

// A writer is suspended before it writes its index row. A cleaner does its work, and another writer changes the entity. The
// writer removes what it writes after that.
func TestSuspendedWriter(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	s, first := b.open(t, definition), true
	s.SetStep(func(string) error {
		if first {
			first = false
			b.settle(ctx, t)
			put(ctx, t, b.Store, id, map[string]any{"link": "b"})
		}
		return nil
	})
	put(ctx, t, s, id, map[string]any{"link": "a"})
	b.agree(ctx, t)
}

// After a Put that returns nil, all index rows of the entity exist, even if Put changes none of them: another writer may have
// written the entity without its rows and died, or may die later.
func TestPutAfterKill(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	finds := func(id entities.ID, link string) {
		t.Helper()
		if all, err := b.Index("index_link").GetAll(ctx, link, entities.Page{}); err != nil || len(all) != 1 || all[0].ID != id {
			t.Errorf("index_link of %s: %d entities, %v, expected %x", link, len(all), err, id)
		}
	}
	for what, first := range map[string]map[string]any{"the same": {"link": "a", "user_id": "ann", "published": 1}, "partly the same": {"link": "b"}} {
		id := newID()
		s := b.open(t, definition)
		s.SetStep(dies(0)) // the entity is written
		if err := s.Put(ctx, id, body(t, first)); !errors.Is(err, entities.ErrNotIndexed) {
			t.Fatalf("%s: got %v, expected ErrNotIndexed", what, err)
		}
		second := map[string]any{"link": first["link"], "user_id": "ann", "published": 1}
		put(ctx, t, b.Store, id, second)
		finds(id, second["link"].(string))
		put(ctx, t, b.Store, id, second)
	}
	b.settle(ctx, t)
	b.agree(ctx, t)
}

// A Put that waited for another writer of its entity sees that writer's row in entity_work, and writes all of its index rows.
func TestPutBehindAnother(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	put(ctx, t, b.Store, id, map[string]any{"link": "a"})
	shard, err := b.r.ForShard(shards.MD5Shard(id[:], shardCount))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	if err := shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		const query = `with put as (update entities set body = '{"link": "b"}', version = next_id() where id = $1 returning version)
			insert into entity_work (version, entity_id, state, before, after) select version, $1, 'written', '{"link": "a"}', '{"link": "b"}' from put`
		var batch pgx.Batch
		entities.Lock(&batch, id)
		batch.Queue(query, id)
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		go func() { done <- b.Put(ctx, id, body(t, map[string]any{"link": "b"})) }()
		soon(ctx, t, func() bool {
			var waits bool
			const query = `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`
			if err := shard.QueryRow(ctx, query).Scan(&waits); err != nil {
				t.Error(err)
				return true
			}
			return waits
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if all, err := b.Index("index_link").GetAll(ctx, "b", entities.Page{}); err != nil || len(all) != 1 {
		t.Errorf("%d entities, %v, expected one", len(all), err)
	}
	b.settle(ctx, t)
	b.agree(ctx, t)
}
