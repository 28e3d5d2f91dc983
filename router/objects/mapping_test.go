package objects_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router"
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

func TestPair(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	p := objects.Pair{There: mapping(t, r, "board", "pin"), Back: mapping(t, r, "pin", "board")}
	boards, pins := []shards.ID{id(t, 0, 2, 1), id(t, 3, 2, 1)}, []shards.ID{}
	for i := range int64(12) {
		pins = append(pins, id(t, shards.Number(i)%shardCount, 1, i+1))
	}
	for i, pin := range pins {
		for _, board := range boards {
			var err error
			switch i % 3 {
			case 0:
				_, err = p.Add(ctx, board, pin, int64(i))
			case 1: // a writer that dies between the two
				_, _, err = p.There.Add(ctx, board, pin, int64(i))
			case 2: // one that dies while it removes
				if _, err = p.Add(ctx, board, pin, int64(i)); err == nil {
					_, err = p.There.Remove(ctx, board, pin)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if added, removed, err := p.Repair(ctx, r, r.All()); err != nil || added != 8 || removed != 8 {
		t.Errorf("%d added, %d removed, %v; expected 8 and 8", added, removed, err)
	}
	agree(ctx, t, p, boards, pins)

	// Writers and repairs at the same time: they end, and one more repair makes all agree.
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 30 {
				board, pin := boards[(g+i)%2], pins[(g*7+i*5)%len(pins)]
				var err error
				if (g+i)%3 == 0 {
					_, err = p.Remove(ctx, board, pin)
				} else {
					_, err = p.Add(ctx, board, pin, int64(i))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() { repair(ctx, t, p, r) })
	all.Wait()
	repair(ctx, t, p, r)
	agree(ctx, t, p, boards, pins)
}

func repair(ctx context.Context, t *testing.T, p objects.Pair, r *router.Router) {
	if _, _, err := p.Repair(ctx, r, r.All()); err != nil {
		t.Error(err)
	}
}

// agree fails the test unless both directions have the same pairs.
func agree(ctx context.Context, t *testing.T, p objects.Pair, boards, pins []shards.ID) {
	t.Helper()
	nothing := func() {}
	there, back := map[[2]shards.ID]bool{}, map[[2]shards.ID]bool{}
	for _, board := range boards {
		for _, pin := range walk(ctx, t, p.There, board, objects.Page{}, nothing) {
			there[[2]shards.ID{board, pin}] = true
		}
	}
	for _, pin := range pins {
		for _, board := range walk(ctx, t, p.Back, pin, objects.Page{}, nothing) {
			back[[2]shards.ID{board, pin}] = true
		}
	}
	for pair := range there {
		if !back[pair] {
			t.Errorf("%v only there", pair)
		}
		delete(back, pair)
	}
	if len(back) > 0 {
		t.Errorf("%v only back", back)
	}
}
