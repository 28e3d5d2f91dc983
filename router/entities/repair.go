package entities

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// finish deletes the rows of entity_work if the entity still has the version whose index rows are written, and reports whether
// it has. A later writer has its own rows there. finish returns [ErrNotIndexed] if the caller no longer owns the work: a
// cleaner that took it may still write index rows that no other row of entity_work names.
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

// name adds the index rows of a projected body to entity_work before they are written, because the work does not have them
// yet: the entity may be deleted before they are written, and the writer may die.
func (s *Store) name(ctx context.Context, shard router.Shard, w *work, body []byte) error {
	const query = `insert into entity_work (entity_id, after, due) values ($1, $2::jsonb, $3::timestamptz + $4::float8 * interval '1 s') returning work_id`
	var workID int64
	err := shard.QueryRow(ctx, query, w.id, string(body), w.until, (defaultGrace / 2).Seconds()).Scan(&workID)
	w.ids = append(w.ids, workID)
	return err
}

// repair writes the index rows of the current entity, and removes the other rows that this work names or wrote. It repeats
// that until the entity does not change in between.
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
			s.counts.taken.Add(1) // two entities are older than the index: the first one has the row
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
