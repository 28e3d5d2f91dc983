package entities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// writes builds the statements that write entities.
func (s *Store) writes() {
	if len(s.d.Indexes) == 0 {
		s.put = `insert into entities (id, body) values ($1, $2::jsonb) on conflict (id) do update set body = excluded.body, updated = clock_timestamp()`
		s.gone = `delete from entities where id = $1`
		return
	}
	// old locks the row before the update, so before is the body that this statement replaces. A row that another statement
	// inserts in the meantime is not in old: then this statement writes nothing and is sent again. pending reports that other
	// writers have work for the entity, or had work when they wrote the row that old waited for: their index rows may be
	// missing.
	s.put = fmt.Sprintf(`with guard as (
			update entity_work set due = due where work_id = $4 and due > clock_timestamp() returning work_id
		), old as (
			select body, xmin::text as version from entities where id = $1 for update
		), pending as (
			select exists (select from entity_work where entity_id = $1 and work_id is distinct from $4)
				or (select version from old) is distinct from (select xmin::text from entities where id = $1) as pending
		), put as (
			insert into entities as e (id, body) select $1, $2::jsonb where $4::bigint is null or exists (select from guard)
			on conflict (id) do update set body = excluded.body, updated = clock_timestamp() where exists (select from old)
			returning e.xmin::text as version
		), work as (
			insert into entity_work (entity_id, before, after, due)
			select $1, (select %s from old), %s, clock_timestamp() + $3::float8 * interval '1 s' from put
			where $4::bigint is not null or (select pending from pending) or (select %[1]s from old) is distinct from %[2]s
			returning work_id, before, after, due - $3::float8 * interval '0.5 s' as until
		)
		select version, coalesce(work_id, 0), before::text, after::text, coalesce(until, 'epoch'), pending
		from pending, put left join work on true`,
		s.project("body"), s.project("$2::jsonb"))
	s.gone = fmt.Sprintf(`with gone as (
			delete from entities where id = $1 returning body
		), work as (
			insert into entity_work (entity_id, before, due) select $1, %s, clock_timestamp() + $2::float8 * interval '1 s' from gone
			returning work_id, before, due - $2::float8 * interval '0.5 s' as until
		)
		select '', work_id, before::text, null, until, false from work`, s.project("body"))
}

// work is the work that a writer or cleaner does for an entity.
type work struct {
	ids           []int64 // of its rows in entity_work
	id            ID
	version       string // of the entity after the write; empty for none
	before, after rows
	pending       bool      // rows that are in both before and after may be missing
	until         time.Time // when the owner loses it, by the clock of the entity's host, less a margin
}

// Put inserts or replaces an entity, and then writes its index rows.
//
// It returns [ErrTaken] and writes nothing if another entity has the values in a unique index. After [ErrNotIndexed] the
// entity is written, and a cleaner writes the index rows. After [router.ErrLost] the entity may be written, and the caller may
// call Put again. Put returns other errors if a [router.Shard] fails or body is not a JSON object; nothing is written then.
func (s *Store) Put(ctx context.Context, id ID, body []byte) error {
	d, err := parse(append([]byte{}, body...)) // a nil body is an error too
	if err != nil {
		return fmt.Errorf("entity %x: %w", id, err)
	}
	shard, err := s.shard(id)
	if err != nil {
		return err
	}
	if len(s.d.Indexes) == 0 {
		_, err := shard.Exec(ctx, s.put, id, string(body))
		return err
	}
	claim, err := s.claim(ctx, shard, id, s.rowsOf(id, d))
	if err != nil {
		return err
	}
	var w work
	var guard *int64
	if len(claim.ids) > 0 {
		guard = &claim.ids[0]
	}
	for {
		if w, err = s.begin(id, shard.QueryRow(ctx, s.put, id, string(body), s.grace.Seconds(), guard)); !errors.Is(err, pgx.ErrNoRows) {
			break
		}
		if late, err := s.lost(ctx, shard, guard); late || err != nil {
			return errors.Join(err, ErrTooLate)
		}
	}
	if err != nil || len(w.ids) == 0 {
		return err
	}
	if guard != nil {
		w.ids, w.until = append(w.ids, *guard), claim.until // the claim's time ends first
	}
	return s.index(ctx, shard, w)
}

// Delete deletes an entity, and then its index rows. It returns [ErrNotFound] if there is none. Its other errors are those of
// Put.
func (s *Store) Delete(ctx context.Context, id ID) error {
	shard, err := s.shard(id)
	if err != nil {
		return err
	}
	if len(s.d.Indexes) == 0 {
		tag, err := shard.Exec(ctx, s.gone, id)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNotFound
		}
		return err
	}
	w, err := s.begin(id, shard.QueryRow(ctx, s.gone, id, s.grace.Seconds()))
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	return s.index(ctx, shard, w)
}

// begin scans the answer of a statement that wrote an entity.
func (s *Store) begin(id ID, answer pgx.Row) (work, error) {
	w := work{id: id}
	var workID int64
	var before, after []byte
	if err := answer.Scan(&w.version, &workID, &before, &after, &w.until, &w.pending); err != nil || workID == 0 {
		return w, err
	}
	w.ids = []int64{workID}
	return w, errors.Join(s.step("entity"), s.read(&w, before, after))
}

// read sets the index rows of the old and new body projections.
func (s *Store) read(w *work, before, after []byte) error {
	was, err := parse(before)
	if err != nil {
		return err
	}
	is, err := parse(after)
	w.before, w.after = s.rowsOf(w.id, was), s.rowsOf(w.id, is)
	return err
}

// index writes the index rows of an entity that was just written.
func (s *Store) index(ctx context.Context, shard router.Shard, w work) error {
	missing := w.after.without(w.before)
	if w.pending {
		missing = w.after.without(nil)
	}
	err := s.write(ctx, missing, w.until)
	if err == nil {
		err = s.remove(ctx, w.before.without(w.after), w.until)
	}
	if err == nil {
		var done bool
		if done, err = s.finish(ctx, shard, w); err == nil && !done {
			err = s.repair(ctx, shard, w)
		}
	}
	if err != nil && !errors.Is(err, ErrNotIndexed) {
		err = fmt.Errorf("%w: %w", ErrNotIndexed, err)
	}
	return err
}

// claim writes the rows of an entity in unique indexes before the entity itself. It returns the work, which has no row of
// entity_work if there are no such rows.
func (s *Store) claim(ctx context.Context, shard router.Shard, id ID, all rows) (work, error) {
	w := work{id: id, after: rows{}}
	for key, row := range all {
		if s.d.Indexes[row.index].Unique {
			w.after[key] = row
		}
	}
	if len(w.after) == 0 {
		return w, nil
	}
	// The new values are written in the form in which they are read: as the properties of a body.
	after := map[string]any{}
	for _, row := range w.after {
		for k, p := range s.d.Indexes[row.index].Properties {
			after[p.Name] = row.values[k]
		}
		for name, v := range s.d.Indexes[row.index].Where {
			after[name] = v
		}
	}
	text, err := json.Marshal(after)
	if err != nil {
		return w, err
	}
	query := `insert into entity_work (entity_id, after, due) values ($1, $2, clock_timestamp() + $3::float8 * interval '1 s')
		returning work_id, due - $3::float8 * interval '0.5 s'`
	var workID int64
	if err := shard.QueryRow(ctx, query, id, string(text), s.grace.Seconds()).Scan(&workID, &w.until); err != nil {
		return w, err
	}
	w.ids = []int64{workID}
	if err := s.step("claim"); err != nil {
		return w, err
	}
	err = s.write(ctx, w.after.without(nil), w.until)
	if err == nil {
		return w, nil
	}
	if !errors.Is(err, ErrTaken) {
		return w, err // the cleaner removes the rows that were written
	}
	if err := s.repair(ctx, shard, w); err != nil {
		return w, errors.Join(ErrTaken, err)
	}
	return w, err
}

// lost reports whether the writer no longer owns its claim.
func (s *Store) lost(ctx context.Context, shard router.Shard, claim *int64) (bool, error) {
	if claim == nil {
		return false, nil
	}
	var late bool
	err := shard.QueryRow(ctx, `select not exists (select from entity_work where work_id = $1 and due > clock_timestamp())`, *claim).Scan(&late)
	return late, err
}
