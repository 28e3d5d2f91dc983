package entities

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// finish removes the rows of entity_work if the entity is still the one whose index rows are written, and reports whether it is.
// Whoever changes it afterwards has rows of their own there. It returns [ErrNotIndexed] once the work is not one's own any
// more: a cleaner that has taken it may still write index rows that nothing else names.
func (s *Store) finish(ctx context.Context, shard router.Shard, w work) (done bool, err error) {
	if err := s.step("finish"); err != nil {
		return false, err
	}
	const query = `with own as materialized (
			select clock_timestamp() < $4 as own
		), same as (
			select from own where own and coalesce((select xmin::text from entities where id = $2), '') = $3
		), done as (
			delete from entity_work where work_id = any($1) and exists (select from same)
		)
		select own, exists (select from same) from own`
	var own bool
	err = shard.QueryRow(ctx, query, w.ids, w.id, w.version, w.until).Scan(&own, &done)
	if err == nil && !own {
		err = fmt.Errorf("too late: %w", ErrNotIndexed)
	}
	return done, err
}

// name says in entity_work which rows are written next, those of a projected body, because no work of one's own names them: by
// the time that they are written, the entity may be deleted, and their writer may die.
func (s *Store) name(ctx context.Context, shard router.Shard, w *work, body []byte) error {
	const query = `insert into entity_work (entity_id, after, due) values ($1, $2::jsonb, $3::timestamptz + $4::float8 * interval '1 s') returning work_id`
	var workID int64
	err := shard.QueryRow(ctx, query, w.id, string(body), w.until, (defaultGrace / 2).Seconds()).Scan(&workID)
	w.ids = append(w.ids, workID)
	return err
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
		if len(want.without(touched)) > 0 {
			if err := s.name(ctx, shard, &w, body); err != nil {
				return err
			}
			touched.add(want)
		}
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
