package entities_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
)

var errKilled = errors.New("killed")

// dies returns a step that has a writer die at its n-th write, from 0, and not write any more.
func dies(n int64) func(string) error {
	var done atomic.Int64
	return func(string) error {
		if done.Add(1) > n {
			return errKilled
		}
		return nil
	}
}

// Writers die between any two of their writes, KILLS times (300 by default), while others write and read the same entities. No query
// ever returns what does not match, and after the cleaner has run, index and entities agree exactly.
func TestKills(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	kills := 300
	if text := os.Getenv("KILOSHARD_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const people, writers = 40, 8
	ids := make([]entities.ID, people)
	var alive [people]sync.RWMutex // writers of an entity hold it for reading
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
				i := rand.IntN(people)
				id := ids[i]
				alive[i].RLock()
				var err error
				if rand.IntN(5) == 0 {
					err = s.Delete(ctx, id)
				} else {
					err = s.Put(ctx, id, body(t, random()))
				}
				alive[i].RUnlock()
				switch {
				case errors.Is(err, errKilled):
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
	reading.Go(func() { // a cleaner beside them, for whom the time of dead writers has passed
		for ended.Err() == nil {
			i := rand.IntN(people)
			alive[i].Lock()
			b.each(ctx, t, `update entity_work set due = '-infinity' where entity_id = '`+fmt.Sprintf("%x", ids[i])+`'`)
			alive[i].Unlock()
			if err := b.Clean(ctx, entities.CleanOptions{Once: true}); err != nil {
				t.Error(err)
			}
		}
	})
	writing.Wait()
	end()
	reading.Wait()
	b.settle(ctx, t)
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

// A writer that repairs what another one has written meanwhile, and dies, has said before what it writes: the cleaner takes
// that away once the entity is deleted.
func TestKillWhileRepairing(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	s := b.open(t, definition)
	var done []string
	s.SetStep(func(step string) error {
		done = append(done, step)
		switch len(done) {
		case 3: // its own row is written
			return b.Put(ctx, id, body(t, map[string]any{"link": "of another"}))
		case 4: // it has read that, and is about to write its row
			return b.Delete(ctx, id)
		case 5:
			return errKilled
		}
		return nil
	})
	if err := s.Put(ctx, id, body(t, map[string]any{"link": "a"})); !errors.Is(err, errKilled) {
		t.Errorf("got %v after %v, expected the end", err, done)
	}
	if want := []string{"entity", "write", "finish", "write", "remove"}; !slices.Equal(done, want) {
		t.Errorf("steps %v, expected %v", done, want)
	}
	b.settle(ctx, t)
	b.agree(ctx, t)
}

// Who is late removes no index row, and leaves them to the cleaner; its work, too, if there is no row to write.
func TestLate(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	put(ctx, t, b.Store, id, map[string]any{"link": "a"})
	slow := b.open(t, definition)
	slow.SetGrace(0)
	if err := slow.Delete(ctx, id); !errors.Is(err, entities.ErrNotIndexed) {
		t.Errorf("got %v, expected ErrNotIndexed", err)
	}
	if err := slow.Put(ctx, id, body(t, map[string]any{"link": 1})); !errors.Is(err, entities.ErrNotIndexed) {
		t.Errorf("got %v, expected ErrNotIndexed", err)
	}
	if lag, err := b.Lag(ctx); err != nil || lag.Waiting != 2 {
		t.Errorf("lag %v, %v, expected 2 that wait", lag, err)
	}
	b.settle(ctx, t)
	b.agree(ctx, t)
}
