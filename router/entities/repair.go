package entities

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// finish deletes the row of entity_work if the entity still has a version, and reports whether it has. A later writer has its
// own row there.
func (s *Store) finish(ctx context.Context, shard router.Shard, w work, version int64) (done bool, err error) {
	if err := s.step("finish"); err != nil {
		return false, err
	}
	const query = `with same as materialized (
			select coalesce((select version from entities where id = $2), 0) = $3 as same
		), done as (
			delete from entity_work where version = $1 and entity_id = $2 and (select same from same)
		)
		select same from same`
	err = shard.QueryRow(ctx, query, w.version, w.id, version).Scan(&done)
	return done, err
}

// repair does the work of a writer that has not finished. If the entity has the version of the work, it writes its index rows.
// Otherwise that is the work of a later writer. It removes the rows that the work names and the entity does not have, up
// to the version of the work or of the entity. It repeats that until the entity does not change in between.
//
// The claims up to the version of the work end first, and only then repair reads the entity: so a writer that adds one of the
// removed rows to it has a higher version, and has written the row with that version before. Repair may run several
// times for a work, and at the same time.
func (s *Store) repair(ctx context.Context, shard router.Shard, w work) error {
	for {
		version, now, err := s.release(ctx, shard, w)
		if err != nil {
			return err
		}
		named := rows{}
		for _, r := range []rows{w.before, w.after} {
			for key, row := range r {
				row.version = max(w.version, version)
				named[key] = row
			}
		}
		if version == w.version {
			switch err := s.write(ctx, now.without(nil)); {
			case errors.Is(err, ErrTaken):
				s.counts.taken.Add(1) // both entities are older than the index, or its host has lost the row
			case err != nil:
				return err
			}
		}
		if err := s.remove(ctx, named.without(now)); err != nil {
			return err
		}
		if done, err := s.finish(ctx, shard, w, version); done || err != nil {
			return err
		}
	}
}

// release ends the claims for an entity up to a version, and then reads the entity.
func (s *Store) release(ctx context.Context, shard router.Shard, w work) (version int64, now rows, err error) {
	if err := s.step("release"); err != nil {
		return 0, nil, err
	}
	var b pgx.Batch
	lock(&b, w.id)
	b.Queue(`update entity_work set state = 'dropped' where entity_id = $1 and state = 'claims' and version <= $2`, w.id, w.version)
	b.Queue(`select version, `+s.project("body")+`::text from entities where id = $1`, w.id)
	var text []byte
	if err := send(ctx, shard, &b, &version, &text); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, nil, err
	}
	d, err := projected(text)
	if err != nil {
		return 0, nil, err
	}
	now, _ = s.rowsOf(w.id, d, version)
	return version, now, nil
}
