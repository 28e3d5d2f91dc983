package entities

import (
	"context"
	"errors"
	"fmt"

	"github.com/kiloshard/kiloshard/router"
)

// work is a row of entity_work: what a writer or cleaner does for an entity.
type work struct {
	id            ID
	version       int64 // of the entity after the write
	exists        bool  // whether the row exists: a Put that changes no index has none
	deleted       bool  // the write has deleted the entity
	before, after rows  // index rows of the entity before and after
	claimed       rows  // rows in unique indexes that are written already
	pending       bool  // other writers have not finished: rows that are in both before and after may be missing
}

// Put inserts or replaces an entity, and then writes its index rows.
//
// After [ErrNotIndexed] the entity is written, and a cleaner writes the index rows. After [router.ErrLost], or an error of ctx,
// it may be written, and the caller may call Put again. After any other error it is not written: [ErrTaken] if another
// entity has the values in a unique index, [ErrTooLong], [DefinitionError], an error about a body that is not a JSON object, or
// one of a [router.Shard]. Values in unique indexes are free again then, or a cleaner frees them if this program or a host fails.
func (s *Store) Put(ctx context.Context, id ID, body []byte) error {
	d, err := s.of(body)
	if err != nil {
		return fmt.Errorf("entity %x: %w", id, err)
	}
	after, err := s.rowsOf(id, d, 0)
	if err != nil {
		return err
	}
	shard, err := s.shard(id)
	if err != nil {
		return err
	}
	if len(s.d.Indexes) == 0 {
		var done bool
		return s.known(ctx, shard, func() error {
			return shard.QueryRow(ctx, s.plainPut, id, s.definitions, string(body)).Scan(&done)
		})
	}
	for attempt := 0; ; attempt++ {
		w, claims, err := s.begin(ctx, shard, id, body, s.hasUnique(after))
		if err == nil && claims {
			err = s.claim(ctx, shard, &w, body)
		}
		switch {
		case errors.Is(err, errOvertaken):
			if err := pause(ctx, attempt); err != nil {
				return err
			}
		case err != nil:
			return err
		case !w.exists:
			return nil
		default:
			return s.index(ctx, shard, w)
		}
	}
}

func (s *Store) hasUnique(all rows) bool {
	for _, r := range all {
		if s.d.Indexes[r.index].Unique {
			return true
		}
	}
	return false
}

// begin writes the entity and the work, or only the work if there are rows to claim.
func (s *Store) begin(ctx context.Context, shard router.Shard, id ID, body []byte, unique bool) (w work, claims bool, err error) {
	var before, after []byte
	w.id = id
	if err := s.locked(ctx, shard, id, s.put, []any{string(body), unique}, &w.version, &claims, &w.pending, &w.exists, &before, &after); err != nil {
		return w, false, err
	}
	if err = s.read(&w, before, after); err != nil && !claims {
		err = notIndexed(err)
	}
	return w, claims, err
}

// Delete deletes an entity, and then its index rows. It returns [ErrNotFound] if there is none. Its other errors are those of
// Put.
func (s *Store) Delete(ctx context.Context, id ID) error {
	shard, err := s.shard(id)
	if err != nil {
		return err
	}
	var found bool
	w := work{id: id, exists: true, deleted: true}
	if len(s.d.Indexes) == 0 {
		err = s.known(ctx, shard, func() error { return shard.QueryRow(ctx, s.plainGone, id, s.definitions).Scan(&found) })
	} else {
		var before []byte
		err = s.locked(ctx, shard, id, s.gone, nil, &found, &w.version, &before)
		if err == nil && found {
			if err = s.read(&w, before, nil); err != nil {
				return notIndexed(err)
			}
		}
	}
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil || len(s.d.Indexes) == 0 {
		return err
	}
	return s.index(ctx, shard, w)
}

// read sets the index rows of the old and new properties. Rows that are too long are in no index.
func (s *Store) read(w *work, before, after []byte) error {
	was, err := projected(before)
	if err != nil {
		return err
	}
	is, err := projected(after)
	w.before, _ = s.rowsOf(w.id, was, w.version)
	w.after, _ = s.rowsOf(w.id, is, w.version)
	return err
}

// index writes the index rows of an entity that was just written, and removes the old ones.
func (s *Store) index(ctx context.Context, shard router.Shard, w work) error {
	missing := w.after.without(w.before)
	if w.pending {
		missing = w.after.without(w.claimed)
	} else if len(w.claimed) > 0 {
		rest := rows{}
		rest.add(w.before)
		rest.add(w.claimed)
		missing = w.after.without(rest)
	}
	err := s.write(ctx, missing)
	if err == nil {
		err = s.remove(ctx, w.before.without(w.after))
	}
	if err == nil {
		var done bool
		version := w.version
		if w.deleted {
			version = 0
		}
		if done, err = s.finish(ctx, shard, w, version); err == nil && !done {
			err = s.repair(ctx, shard, w)
		}
	}
	if err != nil {
		return notIndexed(err)
	}
	return nil
}

// notIndexed returns [ErrNotIndexed] with the text of its cause: an error that the cause matches may mean that nothing is
// written.
func notIndexed(cause error) error { return fmt.Errorf("%w: %v", ErrNotIndexed, cause) } //nolint:errorlint // see above
