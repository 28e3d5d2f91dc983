package move

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// Rollback takes shards back to the hosts that they have left, those of cfg.Shards or all if it is empty, whose way back is open. No
// write made since is lost, and no row is copied: a rollback is a move from its cutover on. It is in the ledger, where
// [Resume] and [Abort] find it.
func Rollback(ctx context.Context, cfg Config) (Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	all, err := Status(ctx, cfg.Map)
	if err != nil {
		return Report{}, err
	}
	var todo []Move
	var found []shards.Number
	for _, m := range all {
		if m.BackUntil().IsZero() || cfg.Shards.Len() > 0 && !cfg.Shards.Has(m.Shard) {
			continue
		}
		found = append(found, m.Shard)
		todo = append(todo, Move{ID: newID(), Shard: m.Shard, Schema: m.Schema, Source: m.Target, Target: m.Source, Step: Prepare, Who: cfg.By, Returns: m.ID})
	}
	var without []shards.Number
	for n := range cfg.Shards.All() {
		if !slices.Contains(found, n) {
			without = append(without, n)
		}
	}
	for _, n := range without {
		if i := slices.IndexFunc(all, func(m Move) bool { return m.Shard == n && m.Outcome == Moved && m.Back != nil && m.Back.Closed != "" }); i >= 0 {
			return Report{}, fmt.Errorf("the way back of shard %d is closed: %s: %w", n, all[i].Back.Closed, ErrNoWayBack)
		}
	}
	if len(without) > 0 {
		return Report{}, fmt.Errorf("shards %s have no way back: %w", shards.SetOf(without...).Short(namesLimit), ErrNoWayBack)
	}
	return each(ctx, cfg, todo, func(ctx context.Context, j *job) error {
		if err := j.mayReturn(ctx); err != nil {
			return err
		}
		if err := enterAlone(ctx, j.from, j.Move); err != nil {
			return err
		}
		j.entered = true
		j.event("begun")
		return j.advance(ctx)
	})
}

// ErrNoWayBack says that a shard cannot be rolled back: it was moved without a way back, or that is closed.
var ErrNoWayBack = errors.New("expected one that was moved with a way back (--rollback-for) which is open; a move to the old host copies a shard")

// readReturned reads the move that this one rolls back, from the ledger of the host that the shard comes back to.
func (j *job) readReturned(ctx context.Context) error {
	j.back = &Move{ID: j.Returns, Shard: j.Shard, Schema: j.Schema, Source: j.Target, Target: j.Source}
	if err := j.back.reread(ctx, j.to); err != nil {
		return fmt.Errorf("move %s on %s, which is to be rolled back: %w", j.Returns, j.Target, err)
	}
	return nil
}

// mayReturn reports why a rollback cannot begin.
func (j *job) mayReturn(ctx context.Context) error {
	var under bool
	if err := j.from.QueryRow(ctx, `SELECT EXISTS (SELECT FROM kiloshard.moves WHERE shard = $1 AND outcome IS NULL)`, j.Shard).Scan(&under); err != nil {
		return err
	}
	if under {
		return fmt.Errorf("%w: see kiloshard move status", ErrUnderWay)
	}
	if home := j.cfg.Map.Host(j.Shard).Name; home != j.Source {
		return fmt.Errorf("the map has the shard on %s, not on %s any more: %w", home, j.Source, ErrNoWayBack)
	}
	why, err := j.back.wayLost(ctx, j.from)
	if err != nil {
		return err
	}
	if why != "" {
		if err := j.back.closeWayBack(ctx, j.to, j.from, why); err != nil && !errors.Is(err, errWayClosed) {
			return err
		}
		return fmt.Errorf("%s: %w", why, ErrNoWayBack)
	}
	if err := j.checkStore(ctx); err != nil {
		return err
	}
	return j.verifyUnchanged(ctx)
}

// verifyUnchanged compares the shard's structure with what it was at the fence: the old schema still is like that.
func (j *job) verifyUnchanged(ctx context.Context) error {
	now, err := structureOn(ctx, j.src, j.cfg.Map, j.Shard)
	if err != nil {
		return err
	}
	if now != j.back.Back.Structure {
		return fmt.Errorf("the shard's tables were changed on %s since it moved there, as by migrate up: %w", j.Source, ErrNoWayBack)
	}
	return nil
}

// drain brings the old schema up to date with all that is committed. Where [Keep] is at it, it waits: all that a long transaction,
// of any database, keeps in the WAL is read anew each time.
func (j *job) drain(ctx context.Context) error {
	// What was committed without waiting for the disk is on it then.
	if _, err := j.from.Exec(ctx, `SELECT pg_logical_emit_message(true, 'kiloshard', 'marker')`); err != nil {
		return err
	}
	began, told := time.Now(), time.Now()
	err := wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		err := j.back.changes(j.to, j.from).Drain(ctx)
		if !errors.Is(err, changes.ErrInUse) {
			return true, err
		}
		if j.outOfPatience(began) {
			return false, fmt.Errorf("%w: waited %s", err, j.cfg.Patience)
		}
		if time.Since(told) > slotEvery {
			told = told.Add(wait.Interval)
			return false, j.nameReader(ctx)
		}
		return false, nil
	})
	var refused *changes.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", refused, ErrNoWayBack)
	}
	return err
}

// nameReader reports who reads the slot of the way back.
func (j *job) nameReader(ctx context.Context) error {
	const query = `SELECT format('process %s (%s)', a.pid, coalesce(nullif(a.application_name, ''), a.usename::text)) FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = $1`
	readers, err := session.Texts(ctx, j.from, query, j.back.way())
	if err == nil && len(readers) > 0 {
		j.event("waits for %s on %s, which reads slot %s", readers[0], j.Source, j.back.way())
	}
	return err
}

// nameAwaited reports the standbys that Postgres waits for, from 17 on, before it hands out a change: one that was promoted may still name itself.
func (j *job) nameAwaited(ctx context.Context) error {
	const query = `
		SELECT slot FROM (SELECT trim(both ' "' from s) FROM unnest(string_to_array(current_setting('synchronized_standby_slots', true), ',')) s) named (slot)
		WHERE slot <> '' AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = slot AND active)`
	slots, err := session.Texts(ctx, j.from, query)
	if err == nil && len(slots) > 0 {
		j.event("waits for a standby to read slot %s on %s: expected one, or synchronized_standby_slots without it", strings.Join(slots, ", "), j.Source)
	}
	return err
}

// showBack returns the statements that take down the fence of the move that is rolled back, and drop it, unless that would drop what is
// somebody's.
func (j *job) showBack(ctx context.Context) (string, error) {
	if err := j.nothingOutside(ctx); err != nil {
		return "", err
	}
	was, err := heldBy(ctx, j.to, j.back.ID)
	return onlyFence(j.Schema) + j.back.unfenceScript(was) + "DROP SCHEMA " + j.back.fence() + " CASCADE;\n", err
}

// reopen makes the old host take writes again, in one transaction: the fence of the move that is rolled back comes down, the sequences go on
// from where they are behind the fence of the host that the shard leaves, and its ledger says so.
func (j *job) reopen(ctx context.Context) error {
	if j.back.Outcome == Returned {
		return nil
	}
	is, err := heldBy(ctx, j.from, j.ID)
	if err != nil {
		return err
	}
	end := setSequences(j.Schema, is) + j.opens() + fmt.Sprintf("UPDATE kiloshard.moves SET outcome = '%s', stepped = clock_timestamp() WHERE id = '%s'; COMMIT", Returned, j.back.ID)
	done := false
	if j.opening != nil { // the fence is down there
		done = session.Run(ctx, j.opening, end) == nil
		session.Close(ctx, j.opening)
		j.opening = nil
	}
	if !done { // unless the answer to its COMMIT was lost
		if err := j.readReturned(ctx); err != nil {
			return err
		}
		done = j.back.Outcome == Returned
	}
	if !done {
		show, err := j.showBack(ctx)
		if err == nil {
			err = session.Run(ctx, j.to, "BEGIN;\n"+show+end)
		}
		if err != nil {
			return fmt.Errorf("taking the fence down on %s: %w", j.Target, err)
		}
	}
	j.back.Outcome = Returned
	j.event("reopened")
	return nil
}
