package move_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards/move"
)

// once is a source of one row that cannot be read twice.
type once struct {
	t    *testing.T
	id   int64
	read int
}

func (o *once) Next() bool             { o.read++; return o.read == 1 }
func (o *once) Values() ([]any, error) { return []any{o.id, "copied"}, nil }
func (o *once) Err() error             { return nil }

// firsts are what may come first in a transaction.
var firsts = map[string]func(t *testing.T, ctx context.Context, tx pgx.Tx) error{
	"exec": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos (title) values ($1)`, "begun")
		return err
	},
	"query": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `insert into photos (title) values ('begun') returning id`).Scan(new(int64))
	},
	"batch": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`insert into photos (title) values ('begun')`)
		b.Queue(`select count(*) from photos`)
		return tx.SendBatch(ctx, &b).Close()
	},
	"copy": func(t *testing.T, ctx context.Context, tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"photos"}, []string{"id", "title"}, &once{t: t, id: 7})
		return err
	},
	"id": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error { // which locks no table
		return tx.QueryRow(ctx, `select next_id()`).Scan(new(int64))
	},
	"ids": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select array(select next_ids($1))`, 3)
		return err
	},
	"batch of an id": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`select next_id()`)
		return tx.SendBatch(ctx, &b).Close()
	},
	"prepared": func(_ *testing.T, ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Prepare(ctx, "mine", `insert into likes (photo, who) select id, $1 from photos order by id limit 1`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "mine", 8)
		return err
	},
}

// A transaction that was begun before the shard moved, and in which nothing has run, runs at the new place.
func TestBegunBeforeMove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	begun, follow := map[string]pgx.Tx{}, []router.Shard{}
	for name := range firsts { // each holds a connection, of a router of its own
		s := b.routed(t)
		follow = append(follow, s)
		for range 10 { // its session knows all that is needed to make IDs
			if _, err := s.NextID(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := s.NextIDs(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if begun[name], err = s.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	for _, s := range follow {
		eventually(t, "a router that has the new map", func() bool { return s.Host().Name == "pg-b" })
	}
	for name, first := range firsts {
		if err := first(t, t.Context(), begun[name]); err != nil {
			t.Errorf("%s: %v", name, err)
			_ = begun[name].Rollback(t.Context())
			continue
		}
		if err := begun[name].Commit(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.equal("rows", b.text(1, `select count(*) from shard_00001.photos`), "1004")
	b.equal("likes", b.text(1, `select count(*) from shard_00001.likes where who = 8`), "1")
}

// laters are what may come later in a transaction that has locked nothing of the shard before: it has failed then, and Retry can begin
// it anew.
var laters = map[string]func(ctx context.Context, tx pgx.Tx) error{
	"id": func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `select next_id()`).Scan(new(int64))
	},
	"ids": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select array(select next_ids(3))`)
		return err
	},
	"batch of an id": func(ctx context.Context, tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`select next_id()`)
		return tx.SendBatch(ctx, &b).Close()
	},
	"insert": func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into photos (title) values ('later')`)
		return err
	},
}

// A transaction that has locked nothing of the shard before that moved is ended by what comes next, as one of a shard that has moved: it
// can be sent again, and Retry does so.
func TestMovedInTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(0, fill)
	s := b.routed(t)
	for range 10 { // its sessions know all that is needed to make IDs
		if _, err := s.NextID(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	open := map[string]pgx.Tx{}
	for name := range laters {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `select 1`); err != nil {
			t.Fatal(err)
		}
		open[name] = tx
	}
	if _, err := move.Run(t.Context(), b.cfg); err != nil {
		t.Fatal(err)
	}
	for name, later := range laters {
		if err := later(t.Context(), open[name]); !errors.Is(err, router.ErrMoved) {
			t.Errorf("%s: got %v, expected ErrMoved", name, err)
		}
		_ = open[name].Rollback(t.Context())
	}
}
