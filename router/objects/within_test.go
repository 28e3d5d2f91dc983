package objects_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/objects"
	"github.com/kiloshard/kiloshard/shards"
)

// What a board, its pins and its rows do in one transaction takes effect with it, or not at all.
func TestWithin(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	memory, err := objects.NewMemory(100, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	boards, pins := open(t, r, "board", objects.Options[Board]{}), open(t, r, "pin", objects.Options[Pin]{Cache: memory})
	boardHasPins := mapping(t, r, "board", "pin")
	names := openMod(t, r, byFacebook)
	shard, err := r.ForShard(2)
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("x")
	for i := 0; shards.MD5Shard(key, shardCount) != 2; i++ {
		key = fmt.Append(nil, i)
	}
	board, err := boards.CreateIn(ctx, shard, Board{"Dogs"})
	if err != nil {
		t.Fatal(err)
	}
	undone := errors.New("undone")
	var pin objects.Object[Pin]
	for _, end := range []error{undone, nil} {
		err := shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			boards, pins, boardHasPins, names := within(t, boards, tx), within(t, pins, tx), within(t, boardHasPins, tx), within(t, names, tx)
			if pin, err = pins.Create(ctx, Pin{Details: "sea"}); err != nil {
				return err
			}
			if got := objects.Layout.Parts(pin.ID).Shard; got != 2 {
				t.Errorf("shard %d, expected that of the transaction", got)
			}
			if _, _, err := boardHasPins.Add(ctx, board.ID, pin.ID, 1); err != nil {
				return err
			}
			if _, err := boards.Update(ctx, board.ID, func(b *Board) error { b.Name = "Cats"; return nil }); err != nil {
				return err
			}
			if _, err := names.Put(ctx, key, "Ann"); err != nil {
				return err
			}
			found, rows, err := objects.Join(ctx, boardHasPins, pins, board.ID, objects.Page{})
			if err != nil || len(found) != 1 || len(rows) != 1 || found[0].Fields.Details != "sea" {
				t.Errorf("in the transaction: got %v, %v, %v", found, rows, err)
			}
			if got, err := pins.Get(ctx, pin.ID); err != nil || got.Fields.Details != "sea" {
				t.Errorf("in the transaction: got %v, %v", got, err)
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		found, _, err := objects.Join(ctx, boardHasPins, pins, board.ID, objects.Page{})
		name, nameErr := names.Get(ctx, key)
		got, boardErr := boards.Get(ctx, board.ID)
		switch {
		case err != nil || boardErr != nil:
			t.Fatal(err, boardErr)
		case end == nil && (len(found) != 1 || name.Value != "Ann" || got.Fields.Name != "Cats"):
			t.Errorf("after a commit: got %v, %v, %v", found, name, got)
		case end != nil && (len(found) != 0 || !errors.Is(nameErr, objects.ErrNotFound) || got.Fields.Name != "Dogs"):
			t.Errorf("after a rollback: got %v, %v, %v", found, name, got)
		}
	}
	if err := shard.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return within(t, pins, tx).Delete(ctx, pin.ID) }); err != nil {
		t.Fatal(err)
	}
	if got, err := pins.Get(ctx, pin.ID); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("got %v, %v, expected none after a Delete in a transaction", got, err)
	}
}

// A transaction of another shard, or of another router, is refused before anything is sent.
func TestWithinAnother(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	other, _ := setup(t)
	pins, boardHasPins := open(t, r, "pin", objects.Options[Pin]{}), mapping(t, r, "board", "pin")
	boards := open(t, r, "board", objects.Options[Board]{})
	names := openMod(t, r, byFacebook)
	in := [2]router.Shard{shardOf(t, r, 0), shardOf(t, r, 1)}
	pin, err := pins.CreateIn(ctx, in[0], Pin{})
	if err != nil {
		t.Fatal(err)
	}
	board, err := boards.CreateIn(ctx, in[0], Board{})
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("x")
	for i := 0; shards.MD5Shard(key, shardCount) != 0; i++ {
		key = fmt.Append(nil, i)
	}
	err = in[1].Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		pins, boardHasPins, names := within(t, pins, tx), within(t, boardHasPins, tx), within(t, names, tx)
		for what, do := range map[string]func() error{
			"get":      func() error { _, err := pins.Get(ctx, pin.ID); return err },
			"get many": func() error { _, err := pins.GetMany(ctx, []shards.ID{pin.ID}); return err },
			"update":   func() error { _, err := pins.Update(ctx, pin.ID, func(*Pin) error { return nil }); return err },
			"delete":   func() error { return pins.Delete(ctx, pin.ID) },
			"create":   func() error { _, err := pins.CreateIn(ctx, in[0], Pin{}); return err },
			"near":     func() error { _, err := pins.CreateNear(ctx, pin.ID, Pin{}); return err },
			"many":     func() error { _, err := pins.CreateMany(ctx, in[0], make([]Pin, 2)); return err },
			"add":      func() error { _, _, err := boardHasPins.Add(ctx, board.ID, pin.ID, 1); return err },
			"page":     func() error { _, err := boardHasPins.Page(ctx, board.ID, objects.Page{}); return err },
			"put":      func() error { _, err := names.Put(ctx, key, ""); return err },
			"remove":   func() error { return names.Delete(ctx, key, 1) },
		} {
			if err := do(); !errors.Is(err, objects.ErrOtherShard) {
				t.Errorf("%s: got %v, expected ErrOtherShard", what, err)
			}
		}
		return tx.QueryRow(ctx, `select 1`).Scan(new(int)) // nothing has failed in it
	})
	if err != nil {
		t.Error(err)
	}

	foreign, err := other.ForShard(0)
	if err != nil {
		t.Fatal(err)
	}
	err = foreign.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { _, err := pins.Within(tx); return err })
	if !errors.Is(err, router.ErrOtherTx) {
		t.Errorf("another router's: got %v, expected ErrOtherTx", err)
	}
	err = in[0].Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		inner, err := tx.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := within(t, pins, inner).Get(ctx, pin.ID); err != nil {
			t.Errorf("in a savepoint: %v", err)
		}
		_, err = pins.Within(struct{ pgx.Tx }{inner})
		return err
	})
	if !errors.Is(err, router.ErrOtherTx) {
		t.Errorf("inside a type of the caller's: got %v, expected ErrOtherTx", err)
	}
}

// CreateMany creates all objects, in their order, or none.
func TestCreateMany(t *testing.T) {
	t.Parallel()
	r, ctx := setup(t)
	raw := open(t, r, "board", objects.Options[map[string]any]{})
	shard, err := r.ForShard(3)
	if err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := shard.QueryRow(ctx, `select count(*) from boards`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := make([]map[string]any, 500)
	ids := make([]shards.ID, len(all))
	for i := range all {
		all[i] = map[string]any{"name": fmt.Sprint(i)}
	}
	created, err := raw.CreateMany(ctx, shard, all)
	if err != nil || len(created) != len(all) {
		t.Fatal(len(created), err)
	}
	for i, o := range created {
		ids[i] = o.ID
	}
	read, err := raw.GetMany(ctx, ids)
	if err != nil || len(read) != len(all) {
		t.Fatal(len(read), err)
	}
	for i, o := range read {
		if o.Fields["name"] != fmt.Sprint(i) {
			t.Errorf("object %d: got %v", i, o.Fields)
		}
	}
	if none, err := raw.CreateMany(ctx, shard, nil); err != nil || len(none) != 0 {
		t.Errorf("none: got %v, %v", none, err)
	}
	for what, bad := range map[string]any{"refused by the store": "\xff", "refused by Postgres": "\x00"} {
		all[250] = map[string]any{"name": bad}
		if created, err := raw.CreateMany(ctx, shard, all); err == nil || len(created) > 0 {
			t.Errorf("%s: got %d objects and %v", what, len(created), err)
		}
	}
	all[250] = map[string]any{"active": true}
	if _, err := raw.CreateMany(ctx, shard, all); !isFieldError(err) {
		t.Errorf("the mark of deleted objects: got %v", err)
	}
	if got := count(); got != len(all) {
		t.Errorf("%d rows, expected %d", got, len(all))
	}
}

func isFieldError(err error) bool {
	var field *shards.FieldError
	return errors.As(err, &field)
}

// within returns a store as seen in a transaction.
func within[S interface{ Within(pgx.Tx) (S, error) }](t *testing.T, store S, tx pgx.Tx) S {
	t.Helper()
	in, err := store.Within(tx)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// A board and its first pin in one transaction.
func ExampleType_Within() {
	ctx := context.Background()
	r := exampleRouter(ctx, 9)
	defer r.Close()
	boards, err := objects.Open(r, "board", objects.Options[Board]{})
	must(err)
	pins, err := objects.Open(r, "pin", objects.Options[Pin]{})
	must(err)
	boardHasPins, err := objects.OpenMapping(r, objects.Relation{From: "board", To: "pin"})
	must(err)
	shard, err := r.ForShard(9)
	must(err)
	board, err := boards.CreateIn(ctx, shard, Board{"Dogs"})
	must(err)

	must(router.Retry{}.Tx(ctx, shard, pgx.TxOptions{}, func(tx pgx.Tx) error {
		pins, err := pins.Within(tx)
		if err != nil {
			return err
		}
		boardHasPins, err := boardHasPins.Within(tx)
		if err != nil {
			return err
		}
		pin, err := pins.Create(ctx, Pin{Details: "terrier", Board: board.ID})
		if err != nil {
			return err
		}
		_, _, err = boardHasPins.Add(ctx, board.ID, pin.ID, objects.ByTime(pin.At))
		return err
	}))
	found, _, err := objects.Join(ctx, boardHasPins, pins, board.ID, objects.Page{})
	must(err)
	fmt.Println(found[0].Fields.Details)
	// Output: terrier
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
