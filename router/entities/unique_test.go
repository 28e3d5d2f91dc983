package entities_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/entities"
)

// A has x. One writer puts y and is slow to remove x. Another puts x again. Then the first one dies, or goes on. A keeps x, and B
// does not get it.
func TestValueStaysWithItsEntity(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	for name, end := range map[string]error{"dies": errKilled, "goes on": nil} {
		id, email := newID(), body(t, map[string]any{"email": name})
		if err := b.Put(ctx, id, email); err != nil {
			t.Fatal(err)
		}
		slow, reached := b.open(t, definition), false
		slow.SetStep(func(step string) error {
			if step != "remove" || reached {
				return nil
			}
			reached = true
			if err := b.Put(ctx, id, email); err != nil {
				t.Error(err)
			}
			return end
		})
		err := slow.Put(ctx, id, body(t, map[string]any{"email": name + ", another"}))
		if end == nil && err != nil || end != nil && !errors.Is(err, entities.ErrNotIndexed) || !reached {
			t.Errorf("%s: got %v", name, err)
		}
		taken := func() {
			t.Helper()
			if err := b.Put(ctx, newID(), email); !errors.Is(err, entities.ErrTaken) {
				t.Errorf("%s: got %v, expected ErrTaken", name, err)
			}
			if all, err := b.Index("index_email").GetAll(ctx, name, entities.Page{}); err != nil || len(all) != 1 || all[0].ID != id {
				t.Errorf("%s: found %d entities, %v", name, len(all), err)
			}
		}
		taken()
		b.settle(ctx, t)
		taken()
		b.agree(ctx, t)
	}
}

// A host loses the claim of a writer in a failover, and makes its version again, for another entity. The writer leaves that claim alone.
func TestVersionMadeAgain(t *testing.T) {
	t.Parallel()
	d := entities.Definition{Shards: 1, Indexes: []entities.IndexDefinition{byEmail}}
	b, ctx := setup(t, d)
	id, other, reached := newID(), newID(), false
	s := b.open(t, d)
	s.SetStep(func(step string) error {
		if step == "commit" && !reached {
			reached = true
			b.each(ctx, t, fmt.Sprintf(`update entity_work set entity_id = '%x'`, other))
		}
		return nil
	})
	put(ctx, t, s, id, map[string]any{"email": "a"})
	kept := 0
	shard, err := b.r.ForShard(0)
	if err == nil {
		err = shard.QueryRow(ctx, `select count(*) from entity_work where entity_id = $1 and state = 'claims'`, other).Scan(&kept)
	}
	if err != nil || kept != 1 || !reached {
		t.Errorf("%d claims of the other entity, %v, expected one", kept, err)
	}
	if err := b.Put(ctx, newID(), body(t, map[string]any{"email": "a"})); !errors.Is(err, entities.ErrTaken) {
		t.Errorf("got %v, expected ErrTaken", err)
	}
}

// A writer claims a value and is suspended. A cleaner ends its claim, and another entity gets the value. The writer does not write
// its entity with a value that it does not have.
func TestSuspendedClaim(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	a, other, email := newID(), newID(), body(t, map[string]any{"email": "a"})
	s, first := b.open(t, definition), true
	s.SetStep(func(step string) error {
		if step == "commit" && first {
			first = false
			if err := b.Put(ctx, other, email); !errors.Is(err, entities.ErrTaken) {
				t.Errorf("got %v during the claim, expected ErrTaken", err)
			}
			b.settle(ctx, t)
			return b.Put(ctx, other, email)
		}
		return nil
	})
	if err := s.Put(ctx, a, email); !errors.Is(err, entities.ErrTaken) || first {
		t.Errorf("got %v, expected ErrTaken", err)
	}
	if _, err := b.Get(ctx, a); !errors.Is(err, entities.ErrNotFound) {
		t.Errorf("got %v, expected ErrNotFound", err)
	}
	b.agree(ctx, t)
}

// A writer has claimed a value, and another one writes the entity. The first writer begins again, so it knows what it replaces.
func TestWriteEndsClaims(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	s, first := b.open(t, definition), true
	s.SetStep(func(step string) error {
		if step == "commit" && first {
			first = false
			put(ctx, t, b.Store, id, map[string]any{"link": "a"})
		}
		return nil
	})
	put(ctx, t, s, id, map[string]any{"email": "a"})
	b.agree(ctx, t)
}

// Postgres refuses a body, before or after the values are claimed. They are free at once.
func TestRefusedBody(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	b.each(ctx, t, `alter table entities add constraint polite check (body->>'title' is distinct from 'rude')`)
	for _, c := range []struct{ text, code string }{
		{`{"email": "a", "title": "\u0000"}`, "22P05"},
		{`{"email": "a", "title": "rude"}`, "23514"},
	} {
		err := b.Put(ctx, newID(), []byte(c.text))
		if pgErr := new(pgconn.PgError); !errors.As(err, &pgErr) || pgErr.Code != c.code || errors.Is(err, entities.ErrNotIndexed) {
			t.Errorf("%s: got %v, expected %s", c.text, err, c.code)
		}
		b.agree(ctx, t)
		id := newID()
		put(ctx, t, b.Store, id, map[string]any{"email": "a"})
		if err := b.Put(ctx, id, []byte(c.text)); err == nil {
			t.Errorf("%s: no error", c.text)
		}
		if err := b.Put(ctx, newID(), body(t, map[string]any{"email": "a"})); !errors.Is(err, entities.ErrTaken) {
			t.Errorf("got %v, expected ErrTaken", err)
		}
		if err := b.Delete(ctx, id); err != nil {
			t.Error(err)
		}
		b.agree(ctx, t)
	}
}

// Two writers claim one value for one entity. The second one is refused, and gives back the row that it shares with the first. So the
// first one has to claim it again.
func TestRefusedBodyEndsOlderClaims(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	b.each(ctx, t, `alter table entities add constraint polite check (body->>'title' is distinct from 'rude')`)
	id := newID()
	s, first := b.open(t, definition), true
	s.SetStep(func(step string) error {
		if step == "commit" && first {
			first = false
			if err := b.Put(ctx, id, body(t, map[string]any{"email": "a", "title": "rude"})); err == nil {
				t.Error("no error for a rude title")
			}
		}
		return nil
	})
	put(ctx, t, s, id, map[string]any{"email": "a"})
	b.agree(ctx, t)
}

// A Put that fails and cannot free its values says only that it wrote nothing.
func TestErrorSaysOneThing(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	put(ctx, t, b.Store, newID(), map[string]any{"email": "a"})
	s := b.open(t, definition)
	s.SetStep(func(step string) error {
		if step == "release" {
			return errKilled
		}
		return nil
	})
	err := s.Put(ctx, newID(), body(t, map[string]any{"email": "a"}))
	if !errors.Is(err, entities.ErrTaken) || errors.Is(err, entities.ErrNotIndexed) {
		t.Errorf("got %v, expected ErrTaken alone", err)
	}
	b.settle(ctx, t)
	b.agree(ctx, t)
}

// A row that no entity has keeps no value from another entity.
func TestStrayRow(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	b.each(ctx, t, `insert into index_email values ('a', gen_random_uuid(), 1)`)
	put(ctx, t, b.Store, newID(), map[string]any{"email": "a"})
	b.walk(ctx, t) // the others are in wrong shards
	b.agree(ctx, t)
}

// Writers move two values to and fro between entities and die at any step, while a cleaner takes any work. At each
// moment a value is in one entity at most.
func TestValuesChangeHands(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	ids := []entities.ID{newID(), newID(), newID()}
	const rounds = 40
	for round := range rounds {
		writers := make(chan error, 4)
		for w := range 4 {
			go func() {
				s := b.open(t, definition)
				if w == 0 {
					s.SetStep(dies(int64(round % 7)))
				}
				if w == 3 {
					b.age(ctx, t)
					writers <- s.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1})
					return
				}
				writers <- s.Put(ctx, ids[(w+round)%2], body(t, map[string]any{"email": fmt.Sprint((w + round/2) % 2)}))
			}()
		}
		for range 4 {
			if err := <-writers; err != nil && !errors.Is(err, errKilled) && !errors.Is(err, entities.ErrTaken) && !errors.Is(err, entities.ErrNotIndexed) {
				t.Error(err)
			}
		}
		var emails []string
		all, err := b.GetMany(ctx, ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			emails = append(emails, field(e.Body, "email"))
		}
		slices.Sort(emails)
		if len(slices.Compact(slices.Clone(emails))) < len(emails) {
			t.Fatalf("round %d: the entities have %q", round, emails)
		}
	}
	b.settle(ctx, t)
	b.walk(ctx, t)
	b.agree(ctx, t)
}
