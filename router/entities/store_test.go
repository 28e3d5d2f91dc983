package entities_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router/entities"
)

func TestLifeOfAnEntity(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	id := newID()
	find := func(name string, lead any, want int) {
		t.Helper()
		all, err := b.Index(name).GetAll(ctx, lead, entities.Page{})
		if err != nil || len(all) != want || want == 1 && all[0].ID != id {
			t.Errorf("%s of %v: %d entities, %v, expected %d", name, lead, len(all), err, want)
		}
	}
	put(ctx, t, b.Store, id, map[string]any{"user_id": "ann", "published": 1, "link": "http://a", "email": "a@b", "score": 1.5, "public": true})
	b.agree(ctx, t)
	find("index_user_id", "ann", 1)
	find("index_link", "http://a", 1)
	find("index_email", "a@b", 1)
	find("index_public", 1.5, 1)
	if e, err := b.Get(ctx, id); err != nil || e.ID != id || e.Updated.IsZero() {
		t.Errorf("got %v, %v", e, err)
	}

	put(ctx, t, b.Store, id, map[string]any{"user_id": "bob", "published": 1, "link": "http://a", "email": "b@b", "score": 1.5, "public": false})
	b.agree(ctx, t)
	find("index_user_id", "ann", 0)
	find("index_user_id", "bob", 1)
	find("index_email", "a@b", 0)
	find("index_public", 1.5, 0)

	if err := b.Put(ctx, newID(), body(t, map[string]any{"email": "b@b"})); !errors.Is(err, entities.ErrTaken) {
		t.Errorf("got %v, expected ErrTaken", err)
	}
	b.agree(ctx, t)
	if err := b.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	find("index_user_id", "bob", 0)
	b.agree(ctx, t)
	if _, err := b.Get(ctx, id); !errors.Is(err, entities.ErrNotFound) {
		t.Errorf("got %v, expected ErrNotFound", err)
	}
	if err := b.Delete(ctx, id); !errors.Is(err, entities.ErrNotFound) {
		t.Errorf("got %v, expected ErrNotFound", err)
	}
	for _, text := range []string{"", "null", "[]", "3", "{"} {
		if err := b.Put(ctx, id, []byte(text)); err == nil {
			t.Errorf("no error for the body %q", text)
		}
	}
	if err := b.Put(ctx, id, nil); err == nil {
		t.Error("no error for a nil body")
	}
	if _, err := b.Index("index_x").GetAll(ctx, "ann", entities.Page{}); !errors.Is(err, entities.ErrNoIndex) {
		t.Errorf("got %v, expected ErrNoIndex", err)
	}
	if _, err := b.Index("index_link").GetAll(ctx, 3, entities.Page{}); err == nil {
		t.Error("no error for a number instead of a text")
	}
}

// Go computes the same index rows from the body that a caller passes and from the body that Postgres stores, for bodies where
// the two might differ.
func TestWhatIsAnIndexRow(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	long := make([]byte, 3000)
	for i := range long {
		long[i] = 'x'
	}
	for _, text := range []string{
		`{}`, `{"user_id": "a", "published": "1"}`, `{"user_id": 1, "published": 1}`, `{"user_id": "a", "published": null}`,
		`{"user_id": "a", "published": 1e2}`, `{"user_id": "a", "published": 3.0}`, `{"user_id": "", "published": -9223372036854775808}`,
		`{"user_id": "é\u00e9\n\"", "published": 9007199254740993}`,
		`{"link": "a", "link": "b"}`, `{"link": "😀"}`, `{"link": {"a": 1}}`,
		`{"user_id": "b", "published": "01"}`, `{"user_id": "b", "published": "+1"}`, `{"user_id": "b", "published": "1.0"}`, `{"user_id": "b", "published": ""}`,
		`{"public": true, "score": "1"}`, `{"public": true, "score": -0.0}`, `{"public": true, "score": 1e-9}`, `{"public": "true", "score": 1}`, `{"public": true, "score": 1E+2}`,
	} {
		if err := b.Put(ctx, newID(), []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	b.agree(ctx, t)
	for _, text := range []string{
		`{"user_id": "a", "published": 1.5}`, `{"user_id": "a", "published": 9223372036854775808}`, `{"user_id": "a", "published": 1e300}`,
	} {
		if err := b.Put(ctx, newID(), []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := b.Put(ctx, newID(), []byte(`{"link": "`+string(long)+`"}`)); !errors.Is(err, entities.ErrTooLong) {
		t.Errorf("got %v, expected ErrTooLong", err)
	}
	if all, err := b.Index("index_user_id").GetAll(ctx, "a", entities.Page{}); err != nil || len(all) != 3 {
		t.Errorf("%d entities, %v, expected the three with whole numbers", len(all), err)
	}
}

func TestPagesAndRanges(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	var ids []entities.ID
	for i := range 30 {
		id := newID()
		ids = append(ids, id)
		put(ctx, t, b.Store, id, map[string]any{"user_id": "ann", "published": i})
		if i%3 == 0 {
			put(ctx, t, b.Store, newID(), map[string]any{"user_id": "bob", "published": i})
		}
	}
	x := b.Index("index_user_id")
	walk := func(page entities.Page, between func()) (got []entities.ID) {
		t.Helper()
		for {
			all, next, err := x.Page(ctx, "ann", page)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range all {
				got = append(got, e.ID)
			}
			if next == "" {
				return got
			}
			page.After = next
			between()
		}
	}
	is := func(got, want []entities.ID) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %x, expected %x", got, want)
		}
	}
	turned := slices.Clone(ids[10:20])
	slices.Reverse(turned)
	is(walk(entities.Page{Limit: 7}, func() {}), ids)
	is(walk(entities.Page{Limit: 5, From: 10, To: 20}, func() {}), ids[10:20])
	is(walk(entities.Page{Limit: 3, From: 10, To: 20, Falling: true}, func() {}), turned)

	// While pages are read, entities come and go before and after them.
	var fresh []entities.ID
	n := 0
	got := walk(entities.Page{Limit: 4}, func() {
		n++
		id := newID()
		fresh = append(fresh, id)
		put(ctx, t, b.Store, id, map[string]any{"user_id": "ann", "published": n * 17 % 30})
		if err := b.Delete(ctx, ids[n*4%30|1]); err != nil && !errors.Is(err, entities.ErrNotFound) {
			t.Fatal(err)
		}
	})
	var even []entities.ID
	for i := 0; i < 30; i += 2 {
		even = append(even, ids[i])
	}
	is(slices.DeleteFunc(slices.Clone(got), func(id entities.ID) bool { return !slices.Contains(even, id) }), even)
	for i, id := range got {
		if slices.Contains(got[:i], id) {
			t.Errorf("%x was seen twice", id)
		}
	}
	for _, after := range []string{"x", "[]", `["a", "b"]`, `[1, "ff"]`} {
		if _, _, err := x.Page(ctx, "ann", entities.Page{After: after}); err == nil {
			t.Errorf("no error for After %q", after)
		}
	}
}

// Many writers write the same few entities. In the end indexes and entities agree without a cleaner.
func TestWritersOfOneEntity(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	ids := []entities.ID{newID(), newID()}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 15 {
				id := ids[(g+i)%2]
				var err error
				if (g*7+i)%6 == 0 {
					err = b.Delete(ctx, id)
				} else {
					err = b.Put(ctx, id, body(t, map[string]any{"user_id": fmt.Sprint(i % 3), "published": g % 2, "link": fmt.Sprint(g), "email": fmt.Sprintf("%x %d", id, i%2)}))
				}
				if err != nil && !errors.Is(err, entities.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.agree(ctx, t)
}

// Many writers put one value of a unique index: one succeeds.
func TestUnique(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		got  int
		text = body(t, map[string]any{"email": "ann@example.org", "link": "l"})
	)
	for range 12 {
		all.Go(func() {
			err := b.Put(ctx, newID(), text)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got++
			} else if !errors.Is(err, entities.ErrTaken) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got != 1 {
		t.Errorf("%d have the value, expected one", got)
	}
	b.agree(ctx, t)
}

func TestGetMany(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, entities.Definition{Shards: shardCount}) // without indexes
	var ids []entities.ID
	for i := range 10 {
		ids = append(ids, newID())
		put(ctx, t, b.Store, ids[i], map[string]any{"n": i})
		put(ctx, t, b.Store, ids[i], map[string]any{"n": i + 1})
	}
	if err := b.Delete(ctx, ids[4]); err != nil {
		t.Fatal(err)
	}
	all, err := b.GetMany(ctx, append(slices.Clone(ids), newID(), ids[2]))
	if err != nil || len(all) != 10 || all[9].ID != ids[2] || string(all[0].Body) != `{"n": 1}` {
		t.Errorf("got %d entities, %v", len(all), err)
	}
	if err := b.Delete(ctx, ids[4]); !errors.Is(err, entities.ErrNotFound) {
		t.Errorf("got %v, expected ErrNotFound", err)
	}
}
