package ids_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
)

var (
	_ ids.Generator[shards.ID] = router.Shard{}
	_ ids.Generator[shards.ID] = (*ids.Tickets)(nil)
	_ ids.Generator[shards.ID] = (*ids.Central)(nil)
	_ ids.Generator[ids.UUID]  = (*ids.Lease[ids.UUID])(nil)
)

// TestEveryGenerator draws from each through the one interface, by itself and leased, from many goroutines.
func TestEveryGenerator(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shard := b.shard(t, 5)
	numbers := map[string]ids.Generator[shards.ID]{
		"next_id": shard,
		"order":   ids.OnShard[shards.ID](shard, "order"),
	}
	for _, name := range []string{"photo", "message", "invoice"} {
		g, err := ids.Open(t.Context(), ids.Config{Map: b.m, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		numbers[name] = g
	}
	for name, g := range numbers {
		t.Run(name, func(t *testing.T) {
			for _, id := range drawn(t, g) {
				if n, err := b.m.ForIDOf(name, id); name == "order" && (n != 5 || err != nil) {
					t.Fatalf("ID %d is on shard %d, %v; expected 5", id, n, err)
				}
				if n, err := b.m.ForID(id); name == "next_id" && (n != 5 || err != nil) {
					t.Fatalf("ID %d is on shard %d, %v; expected 5", id, n, err)
				}
			}
		})
	}
	for _, name := range []string{"session", "event"} {
		t.Run(name, func(t *testing.T) { drawn(t, ids.OnShard[ids.UUID](shard, name)) })
	}
}

// drawn draws from a generator and from a lease of it at once, and checks that all IDs differ.
func drawn[T comparable](t *testing.T, g ids.Generator[T]) []T {
	lease := ids.NewLease(ids.LeaseConfig[T]{Generator: g})
	defer lease.Close()
	var all collection[T]
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 50 {
				from := []ids.Generator[T]{g, lease}[i%2]
				made, err := from.NextIDs(t.Context(), k%7)
				if err != nil || len(made) != k%7 {
					t.Errorf("got %d IDs, %v; expected %d", len(made), err, k%7)
					return
				}
				all.add(made...)
			}
		})
	}
	wg.Wait()
	all.checkUnique(t, 1000)
	return all.ids
}

// TestColumnDefaults has every generator as a column's default.
func TestColumnDefaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shard := b.shard(t, 2) // on pg-a, where the sequence is and a ticket server
	for i, test := range []struct{ kind, function string }{
		{"bigint", "next_id()"},
		{"bigint", "next_order_id()"},
		{"bigint", "kiloshard.next_photo_id()"},
		{"bigint", "kiloshard.next_message_id()"},
		{"uuid", "next_session_id()"},
		{"uuid", "next_event_id()"},
	} {
		t.Run(test.function, func(t *testing.T) {
			table := fmt.Sprintf("t%d", i)
			if _, err := shard.Exec(t.Context(), fmt.Sprintf("create table %s (id %s primary key default %s, x int)", table, test.kind, test.function)); err != nil {
				t.Fatal(err)
			}
			if _, err := shard.Exec(t.Context(), "insert into "+table+" (x) select generate_series(1, 100)"); err != nil {
				t.Fatal(err)
			}
			var n int
			if err := shard.QueryRow(t.Context(), "select count(distinct id) from "+table).Scan(&n); err != nil || n != 100 {
				t.Errorf("%d rows with an ID of their own, %v; expected 100", n, err)
			}
		})
	}
}

// TestARowHasNoGaps rolls back and leaves no number out.
func TestARowHasNoGaps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	shard := b.shard(t, 6) // on pg-b, where the counter is
	const query = "select kiloshard.next_invoice_id()"
	for want := 1; want <= 3; want++ {
		tx, err := shard.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var lost, kept int
		if err := tx.QueryRow(t.Context(), query).Scan(&lost); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := shard.QueryRow(t.Context(), query).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		if lost != want || kept != want {
			t.Errorf("got %d, rolled back, and then %d; expected %d for both", lost, kept, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, name := range []string{"nobody", "order", "event"} {
		if _, err := ids.Open(t.Context(), ids.Config{Map: b.m, Name: name}); !errors.Is(err, shards.ErrNoGenerator) {
			t.Errorf("Open of %q: %v, expected %v", name, err, shards.ErrNoGenerator)
		}
	}
	var e *shards.FieldError
	if _, err := ids.OnShard[shards.ID](b.shard(t, 1), "order").NextIDs(context.Background(), -1); !errors.As(err, &e) {
		t.Errorf("NextIDs(-1): %v, expected a FieldError", err)
	}
}
