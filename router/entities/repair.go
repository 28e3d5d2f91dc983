package entities

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// finish removes the rows of entity_work if the entity is still the one whose index rows are written, and reports whether it is.
// Whoever changes it afterwards has rows of their own there.
func (s *Store) finish(ctx context.Context, shard router.Shard, w work) (done bool, err error) {
	if err := s.step("finish"); err != nil {
		return false, err
	}
	const query = `with same as (
			select where coalesce((select xmin::text from entities where id = $2), '') = $3
		), done as (
			delete from entity_work where work_id = any($1) and exists (select from same)
		)
		select exists (select from same)`
	return done, shard.QueryRow(ctx, query, w.ids, w.id, w.version).Scan(&done)
}

// repair writes the index rows of an entity as it is now and removes the others that this work names or has written, until the
// entity stays the same meanwhile.
func (s *Store) repair(ctx context.Context, shard router.Shard, w work) error {
	touched := rows{}
	touched.add(w.before)
	touched.add(w.after)
	query := `select xmin::text, ` + s.project("body") + `::text from entities where id = $1`
	for {
		var body []byte
		w.version = ""
		if err := shard.QueryRow(ctx, query, w.id).Scan(&w.version, &body); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		d, err := parse(body)
		if err != nil {
			return err
		}
		want := s.rowsOf(w.id, d)
		touched.add(want)
		switch err := s.write(ctx, want.without(nil), w.until); {
		case errors.Is(err, ErrTaken):
			s.counts.taken.Add(1) // two entities from before the index: the first one has it
		case err != nil:
			return err
		}
		if err := s.remove(ctx, touched.without(want), w.until); err != nil {
			return err
		}
		if done, err := s.finish(ctx, shard, w); done || err != nil {
			return err
		}
	}
}
