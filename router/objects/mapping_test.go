package objects_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// id returns the ID of an object that need not be there.
func id(t *testing.T, n shards.Number, typ int, local int64) shards.ID {
	t.Helper()
	id, err := objects.Layout.Compose(shards.Parts{Shard: n, Type: typ, Sequence: local})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// walk reads all pages, and calls between after each.
func walk(ctx context.Context, t *testing.T, m *objects.Mapping, from shards.ID, page objects.Page, between func()) (all []shards.ID) {
	t.Helper()
	for {
		rows, err := m.Page(ctx, from, page)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			return all
		}
		for _, row := range rows {
			all = append(all, row.To)
		}
		page.After = &rows[len(rows)-1]
		between()
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	m := mapping(t, r, "board", "pin")
	board := id(t, 2, 2, 1)
	var pins []shards.ID
	for i := range int64(12) {
		pin := id(t, shards.Number(i)%shardCount, 1, i+1)
		pins = append(pins, pin)
		if _, added, err := m.Add(ctx, board, pin, i/3); err != nil || !added { // three of each sequence
			t.Fatal(added, err)
		}
	}
	if row, added, err := m.Add(ctx, board, pins[4], 99); err != nil || added || row.Sequence != 1 {
		t.Errorf("got %v, %v, %v, expected the row that is there", row, added, err)
	}
	if count, err := m.Count(ctx, board); err != nil || count != len(pins) {
		t.Errorf("got %d, %v, expected %d", count, err, len(pins))
	}
	turned := slices.Clone(pins)
	slices.Reverse(turned)
	for i := 0; i < len(turned); i += 3 {
		slices.Sort(turned[i : i+3])
		slices.Reverse(turned[i : i+3])
	}
	nothing := func() {}
	if got := walk(ctx, t, m, board, objects.Page{Limit: 5, Falling: true}, nothing); !slices.Equal(got, turned) {
		t.Errorf("got %v, expected %v", got, turned)
	}
	if moved, err := m.Move(ctx, board, pins[0], 100); err != nil || !moved {
		t.Errorf("%v, %v", moved, err)
	}
	if removed, err := m.Remove(ctx, board, pins[1]); err != nil || !removed {
		t.Errorf("%v, %v", removed, err)
	}
	if removed, err := m.Remove(ctx, board, pins[1]); err != nil || removed {
		t.Errorf("removed twice: %v, %v", removed, err)
	}
	order := append(slices.Clone(pins[2:]), pins[0])
	slices.Reverse(order)
	if n, err := m.Arrange(ctx, board, append(order, pins[1])); err != nil || n != len(order) {
		t.Errorf("%d, %v", n, err)
	}
	if got := walk(ctx, t, m, board, objects.Page{Limit: 4}, nothing); !slices.Equal(got, order) {
		t.Errorf("got %v, expected %v", got, order)
	}
	if _, _, err := m.Add(ctx, pins[0], board, 1); err == nil {
		t.Error("IDs the wrong way round are not refused")
	}
}

// Rows come and go while somebody turns pages: those that stay are seen once.
func TestPagesStayStable(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	m := mapping(t, r, "board", "pin")
	board := id(t, 1, 2, 1)
	var stay []shards.ID
	for i := range int64(40) {
		pin := id(t, 0, 1, i+1)
		if i%2 == 0 {
			stay = append(stay, pin)
		}
		if _, _, err := m.Add(ctx, board, pin, i*10); err != nil {
			t.Fatal(err)
		}
	}
	fresh := int64(1000)
	got := walk(ctx, t, m, board, objects.Page{Limit: 4}, func() {
		for i := range int64(4) { // before the page and behind it
			fresh++
			if _, _, err := m.Add(ctx, board, id(t, 0, 1, fresh), fresh*37%400); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Remove(ctx, board, id(t, 0, 1, (fresh-1000+i)%20*2+2)); err != nil {
				t.Fatal(err)
			}
		}
	})
	kept := slices.DeleteFunc(slices.Clone(got), func(id shards.ID) bool { return !slices.Contains(stay, id) })
	if !slices.Equal(kept, stay) {
		t.Errorf("of %v those that stayed are %v, expected %v", got, kept, stay)
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != len(got) {
		t.Error("a row was seen twice")
	}
}

// Two that arrange the same rows in other orders do not wait for each other.
func TestArrangeTogether(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	m := mapping(t, r, "board", "pin")
	board := id(t, 1, 2, 1)
	var pins []shards.ID
	for i := range int64(200) {
		pins = append(pins, id(t, 0, 1, i+1))
		if _, _, err := m.Add(ctx, board, pins[i], i); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			order := slices.Clone(pins)
			for range 30 {
				rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				if n, err := m.Arrange(ctx, board, order); n != len(order) || err != nil {
					t.Errorf("%d rows, %v", n, err)
				}
			}
		})
	}
	all.Wait()
}

// Two relations between the same types are two tables.
func TestRelationsOfTheSameTypes(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	likes, err := objects.OpenMapping(r, likes)
	if err != nil {
		t.Fatal(err)
	}
	board, pin := id(t, 1, 2, 1), id(t, 0, 1, 1)
	if _, added, err := likes.Add(ctx, board, pin, 1); err != nil || !added {
		t.Errorf("%v, %v", added, err)
	}
	if n, err := mapping(t, r, "board", "pin").Count(ctx, board); err != nil || n != 0 {
		t.Errorf("the other relation has %d rows, %v", n, err)
	}
}
