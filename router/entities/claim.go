package entities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// errOvertaken means that another writer or a cleaner has ended a claim.
var errOvertaken = errors.New("the claim was ended by another write")

// claim writes the rows of an entity in unique indexes, and then the entity. If it cannot, it removes the rows.
func (s *Store) claim(ctx context.Context, shard router.Shard, w *work, body []byte) error {
	w.claimed = rows{}
	for key, r := range w.after {
		if _, has := w.before[key]; !has && s.d.Indexes[r.index].Unique {
			w.claimed[key] = r
		}
	}
	err := s.write(ctx, w.claimed.without(nil))
	if err != nil {
		s.giveBack(ctx, shard, *w)
		return notWritten(err)
	}
	if err := s.step("commit"); err != nil {
		return err
	}
	var mine bool
	err = s.locked(ctx, shard, w.id, s.commit, []any{string(body), w.version}, &mine, &w.pending)
	if err == nil && mine {
		return nil
	}
	if err == nil {
		s.giveBack(ctx, shard, *w)
		return errOvertaken
	}
	switch state, unknown := s.settle(ctx, shard, *w); {
	case unknown != nil:
		return err
	case state == "written":
		w.pending = true // the answer that says so is lost
		return nil
	default:
		s.giveBack(ctx, shard, *w)
		return notWritten(err)
	}
}

// notWritten removes from an error that nothing was written what says that it may be.
func notWritten(err error) error {
	if errors.Is(err, router.ErrLost) || errors.Is(err, router.ErrOutcomeUnknown) || errors.Is(err, ErrNotIndexed) {
		return fmt.Errorf("the entity is not written: %v", err) //nolint:errorlint // see above
	}
	return err
}

const cleanUpTime = 5 * time.Second

// giveBack ends a claim and removes its rows, also if ctx has ended. If it fails, a cleaner does that.
func (s *Store) giveBack(ctx context.Context, shard router.Shard, w work) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_ = s.repair(ctx, shard, w)
}

// settle ends a claim whose write has failed, and returns the state of the work: it may be written.
func (s *Store) settle(ctx context.Context, shard router.Shard, w work) (state string, err error) {
	if err := s.step("settle"); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	var b pgx.Batch
	b.Queue(`update entity_work set state = 'dropped' where version = $1 and entity_id = $2 and state = 'claims'`, w.version, w.id)
	b.Queue(`select state from entity_work where version = $1 and entity_id = $2`, w.version, w.id)
	return state, send(ctx, shard, &b, &state)
}

// contest is called when other entities have some of these rows of a unique index. It removes the rows that those entities
// do not have, and writes these. It returns [ErrTaken] if an entity has one.
func (s *Store) contest(ctx context.Context, shard router.Shard, t table, some []row) error {
	for {
		found, err := shard.Query(ctx, t.holders, t.args(some)...)
		if err != nil {
			return err
		}
		others, err := pgx.CollectRows(found, t.scan(some[0].index))
		if err != nil {
			return err
		}
		stray, err := s.strays(ctx, shard, t, others)
		if err != nil {
			return err
		}
		if len(stray) < len(others) {
			return ErrTaken
		}
		if _, err := shard.Exec(ctx, t.stray, t.args(stray)...); err != nil {
			return err
		}
		tag, err := shard.Exec(ctx, t.write, t.args(some)...)
		if err != nil || int(tag.RowsAffected()) == len(some) {
			return err
		}
	}
}

// strays returns those of the rows of an index in a shard that no entity has or is about to have. As long as such a row keeps its
// version, that stays so: a writer writes its version first.
func (s *Store) strays(ctx context.Context, shard router.Shard, t table, hints []row) ([]row, error) {
	states, err := s.look(ctx, collect(hints, func(r row) ID { return r.id }))
	if err != nil {
		return nil, err
	}
	var stray []row
	for _, hint := range hints {
		state := states[hint.id]
		// A row in the wrong shard is stray too: no query reads it there.
		if s.hash(hint.values[0]) != shard.Number() || !state.claims && !t.has(state.properties, hint.values) {
			stray = append(stray, hint)
		}
	}
	return stray, nil
}

// scan returns a function that scans the columns of [table.list].
func (t table) scan(index int) pgx.RowToFunc[row] {
	return func(r pgx.CollectableRow) (row, error) {
		values, err := r.Values()
		if err != nil {
			return row{}, err
		}
		n := len(t.Properties)
		id, isID := values[n].(ID)
		version, isVersion := values[n+1].(int64)
		if !isID || !isVersion {
			return row{}, fmt.Errorf("%s: entity_id is a %T, entity_version a %T", t.Name, values[n], values[n+1])
		}
		return row{index, scanned(values[:n]), id, version}, nil
	}
}
