package objects_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

func TestLifeOfAnObject(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	pins := open(t, r, "pin", objects.Options[Pin]{})
	pin, err := pins.Create(ctx, Pin{Details: "sea"})
	if err != nil {
		t.Fatal(err)
	}
	near, err := pins.CreateNear(ctx, pin.ID, Pin{Details: "lake"})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := objects.Layout.Parts(pin.ID), objects.Layout.Parts(near.ID); a.Shard != b.Shard || a.Type != 1 || b.Sequence != a.Sequence+1 {
		t.Errorf("the IDs %+v and %+v, expected one shard, type 1, and the next row", a, b)
	}
	get := func(want error) {
		t.Helper()
		got, err := pins.Get(ctx, pin.ID)
		if !errors.Is(err, want) || err == nil && got.Fields != pin.Fields {
			t.Errorf("got %v, %v, expected %v", got, err, want)
		}
	}
	is := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("got %v, expected %v", err, want)
		}
	}
	get(nil)
	is(pins.Undelete(ctx, pin.ID), objects.ErrNotFound)
	is(pins.Delete(ctx, pin.ID), nil)
	is(pins.Delete(ctx, pin.ID), objects.ErrNotFound)
	get(objects.ErrNotFound)
	_, err = pins.Update(ctx, pin.ID, func(*Pin) error { return nil })
	is(err, objects.ErrNotFound)
	is(pins.Undelete(ctx, pin.ID), nil)
	get(nil)
	is(pins.Delete(ctx, pin.ID), nil)
	is(pins.Purge(ctx, pin.ID), nil)
	is(pins.Undelete(ctx, pin.ID), objects.ErrNotFound)
	get(objects.ErrNotFound)

	boards := open(t, r, "board", objects.Options[Board]{})
	_, err = boards.Get(ctx, near.ID)
	is(err, objects.ErrType)
	_, err = pins.GetMany(ctx, []shards.ID{near.ID, near.ID + 1<<46*shardCount})
	is(err, shards.ErrNoShard)
	_, err = pins.Get(ctx, near.ID|1<<62)
	is(err, shards.ErrNoShard)
	_, err = objects.Open(r, "pins", objects.Options[Pin]{})
	is(err, objects.ErrType)
	type marked struct {
		On bool `json:"active"`
	}
	if _, err := objects.Open(r, "pin", objects.Options[marked]{}); err == nil {
		t.Error("a field named active is not refused")
	}
}

// An older program knows fewer fields than the newer one that has written, and a newer one more.
func TestFieldsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	type newer struct {
		Name  string   `json:"name"`
		Likes int64    `json:"likes"`
		Tags  []string `json:"tags,omitempty"`
	}
	old := open(t, r, "board", objects.Options[Board]{})
	fresh := open(t, r, "board", objects.Options[newer]{New: func() newer { return newer{Likes: 7} }})
	raw := open(t, r, "board", objects.Options[json.RawMessage]{})

	board, err := old.Create(ctx, Board{"Dogs"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fresh.Get(ctx, board.ID); err != nil || got.Fields.Likes != 7 || got.Fields.Name != "Dogs" {
		t.Errorf("got %v, %v, expected the default for the field that is absent", got, err)
	}
	const many = 1<<53 + 1 // no float64
	if _, err := fresh.Update(ctx, board.ID, func(b *newer) error { b.Likes, b.Tags = many, []string{"a"}; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Update(ctx, board.ID, func(b *Board) error { b.Name = "Cats"; return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := fresh.Get(ctx, board.ID); err != nil || got.Fields.Likes != many || got.Fields.Name != "Cats" || len(got.Fields.Tags) != 1 {
		t.Errorf("got %+v, %v, expected the fields that the older program does not know", got, err)
	}
	if _, err := fresh.Update(ctx, board.ID, func(b *newer) error { b.Tags = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := raw.Get(ctx, board.ID); err != nil || string(got.Fields) != fmt.Sprintf(`{"name": "Cats", "likes": %d}`, many) {
		t.Errorf("got %s, %v, expected no field that is empty", got.Fields, err)
	}
	if _, err := raw.Update(ctx, board.ID, func(b *json.RawMessage) error { *b = json.RawMessage(`{"name": "x"}`); return nil }); err != nil {
		t.Fatal(err)
	}
	if got, err := raw.Get(ctx, board.ID); err != nil || string(got.Fields) != `{"name": "x"}` {
		t.Errorf("got %s, %v, expected what was written, since all of it is known", got.Fields, err)
	}
}

// For each kind of T an update writes what the program has changed, and nothing else.
func TestUpdatesWriteOnlyChanges(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	raw := open(t, r, "board", objects.Options[json.RawMessage]{})
	type address struct {
		City string `json:"city"`
	}
	type person struct {
		Name string   `json:"name"`
		At   address  `json:"at"`
		Tags []string `json:"tags,omitempty"`
	}
	const stored = `{"at": {"zip": "04109", "city": "Leipzig"}, "id": 123456789012345840, "name": "Ann", "tags": ["a"], "score": 1.10}`
	change := func(p *person) { p.At.City, p.Tags = "Berlin", nil }
	for what, update := range map[string]func(shards.ID) error{
		"struct": func(id shards.ID) error {
			_, err := open(t, r, "board", objects.Options[person]{}).Update(ctx, id, func(p *person) error { change(p); return nil })
			return err
		},
		"pointer": func(id shards.ID) error {
			_, err := open(t, r, "board", objects.Options[*person]{}).Update(ctx, id, func(p **person) error { change(*p); return nil })
			return err
		},
		"map": func(id shards.ID) error {
			_, err := open(t, r, "board", objects.Options[map[string]any]{}).Update(ctx, id, func(p *map[string]any) error {
				(*p)["at"].(map[string]any)["city"] = "Berlin"
				delete(*p, "tags")
				return nil
			})
			return err
		},
	} {
		board, err := raw.Create(ctx, json.RawMessage(stored))
		if err != nil {
			t.Fatal(err)
		}
		if err := update(board.ID); err != nil {
			t.Fatal(err)
		}
		const want = `{"at": {"zip": "04109", "city": "Berlin"}, "id": 123456789012345840, "name": "Ann", "score": 1.10}`
		if got, err := raw.Get(ctx, board.ID); err != nil || string(got.Fields) != want {
			t.Errorf("%s: got %s, %v, expected %s", what, got.Fields, err, want)
		}
	}
}

// What the store could not keep as it is it refuses.
func TestDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	type marked struct {
		On bool `json:"active"`
	}
	if _, err := objects.Open(r, "pin", objects.Options[*marked]{}); err == nil {
		t.Error("a field named active is not refused")
	}
	maps := open(t, r, "board", objects.Options[map[string]any]{})
	if _, err := maps.Create(ctx, map[string]any{"active": false}); err == nil {
		t.Error("a new object is marked as deleted")
	}
	board, err := maps.Create(ctx, map[string]any{"name": `a \ufffd and a \uFFFD`})
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(map[string]any){
		"a mark":        func(m map[string]any) { m["active"] = false },
		"no text":       func(m map[string]any) { m["name"] = "a\xffb" },
		"no text in it": func(m map[string]any) { m["names"] = []any{`\`, "\xff"} },
	} {
		var field *shards.FieldError
		if _, err := maps.Update(ctx, board.ID, func(m *map[string]any) error { change(*m); return nil }); !errors.As(err, &field) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if got, err := maps.Get(ctx, board.ID); err != nil || fmt.Sprint(got.Fields) != `map[name:a \ufffd and a \uFFFD]` {
		t.Errorf("got %v, %v", got.Fields, err)
	}
}

func TestGetMany(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	memory, err := objects.NewMemory(100, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range []objects.Options[Pin]{{}, {Cache: memory}} {
		pins := open(t, r, "pin", options)
		var ids []shards.ID
		for i := range 20 {
			shard, err := r.ForShard(shards.Number(i % shardCount))
			if err != nil {
				t.Fatal(err)
			}
			pin, err := pins.CreateIn(ctx, shard, Pin{Details: fmt.Sprint(i)})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, pin.ID)
		}
		ids = append(ids, ids[3], ids[0]+1000)
		if err := pins.Delete(ctx, ids[5]); err != nil {
			t.Fatal(err)
		}
		want := append(slices.Delete(slices.Clone(ids), 5, 6)[:19], ids[3])
		for range 2 {
			all, err := pins.GetMany(ctx, ids)
			if err != nil {
				t.Fatal(err)
			}
			var got []shards.ID
			for _, pin := range all {
				got = append(got, pin.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %v, expected %v", got, want)
			}
		}
		if _, err := pins.Update(ctx, ids[7], func(p *Pin) error { p.Details = "new"; return nil }); err != nil {
			t.Fatal(err)
		}
		if got, err := pins.Get(ctx, ids[7]); err != nil || got.Fields.Details != "new" {
			t.Errorf("got %v, %v after an update", got, err)
		}
	}
}

// Few objects of a shard are read by another statement than many.
func TestGetManyOfOneShard(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	pins := open(t, r, "pin", objects.Options[Pin]{})
	var ids []shards.ID
	for n := range 6 {
		pin, err := pins.Create(ctx, Pin{Details: fmt.Sprint(n)})
		if n > 0 {
			pin, err = pins.CreateNear(ctx, ids[0], Pin{Details: fmt.Sprint(n)})
		}
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, pin.ID)
		all, err := pins.GetMany(ctx, ids)
		if err != nil || len(all) != len(ids) {
			t.Errorf("got %v, %v, expected %d", all, err, len(ids))
		}
		for i, o := range all {
			if o.ID != ids[i] || o.Fields.Details != fmt.Sprint(i) {
				t.Errorf("got %v at %d of %d", o, i, len(ids))
			}
		}
	}
}

func TestUpdatesOfManyLoseNothing(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	type counter struct {
		N int `json:"n"`
	}
	boards := open(t, r, "board", objects.Options[counter]{})
	board, err := boards.Create(ctx, counter{})
	if err != nil {
		t.Fatal(err)
	}
	const goroutines, times = 32, 10
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for range times {
				if _, err := boards.Update(ctx, board.ID, func(c *counter) error { c.N++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got, err := boards.Get(ctx, board.ID); err != nil || got.Fields.N != goroutines*times {
		t.Errorf("got %d, %v, expected %d", got.Fields.N, err, goroutines*times)
	}
}

func TestClosedHostsGetNothingNew(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	pins := open(t, r, "pin", objects.Options[Pin]{})
	c := r.Map().Config()
	c.Hosts = slices.Clone(c.Hosts)
	c.Hosts[0].Closed = true
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetMap(m); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		pin, err := pins.Create(ctx, Pin{})
		if err != nil {
			t.Fatal(err)
		}
		if p, err := objects.Locate(r, pin.ID); err != nil || p.Shard.Host().Name != "pg-b" {
			t.Errorf("a new object on %v, %v", p.Shard, err)
		}
	}
}

// Where hosts are closed the shards of the others get new objects alike, and hosts by their weights.
func TestNewObjectsAreEven(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	boards := open(t, r, "board", objects.Options[Board]{})
	count := func(change func([]shards.Host)) (of [shardCount]int) {
		t.Helper()
		c := r.Map().Config()
		c.Hosts = slices.Clone(c.Hosts)
		change(c.Hosts)
		m, err := c.Map()
		if err == nil {
			err = r.SetMap(m)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			board, err := boards.Create(ctx, Board{})
			if err != nil {
				t.Fatal(err)
			}
			of[objects.Layout.Parts(board.ID).Shard]++
		}
		return of
	}
	if got := count(func(h []shards.Host) { h[0].Weight, h[1].Weight = 1, 3 }); got[0]+got[1] > 150 || got[0]+got[1] < 50 {
		t.Errorf("got %v, expected a quarter on the first host", got)
	}
	if got := count(func(h []shards.Host) { h[0].Closed = true }); got[0]+got[1] > 0 || got[2] > 300 || got[3] > 300 {
		t.Errorf("got %v, expected the half in each shard of the host that is open", got)
	}
}

// failing is a cache that is down.
type failing struct{}

func (failing) Get(context.Context, []shards.ID) (map[shards.ID][]byte, error) {
	return nil, errors.New("down")
}

func (failing) Set(context.Context, map[shards.ID][]byte, time.Time) error { return errors.New("down") }

func (failing) Delete(context.Context, shards.ID) error { return errors.New("down") }

func TestCaches(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	down := open(t, r, "pin", objects.Options[Pin]{Cache: failing{}})
	pin, err := down.Create(ctx, Pin{Details: "sea"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := down.Get(ctx, pin.ID); err != nil || got.Fields != pin.Fields {
		t.Errorf("got %v, %v with a cache that is down", got, err)
	}
	for age, want := range map[time.Duration]string{time.Hour: "sea", 0: "lake"} {
		memory, err := objects.NewMemory(10, age)
		if err != nil {
			t.Fatal(err)
		}
		pins := open(t, r, "pin", objects.Options[Pin]{Cache: memory})
		set := func(details string) {
			if _, err := down.Update(ctx, pin.ID, func(p *Pin) error { p.Details = details; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		set("sea")
		if _, err := pins.Get(ctx, pin.ID); err != nil {
			t.Fatal(err)
		}
		set("lake") // past the cache
		if got, err := pins.Get(ctx, pin.ID); err != nil || got.Fields.Details != want {
			t.Errorf("kept for %v: got %v, %v, expected %s", age, got, err, want)
		}
	}
}
