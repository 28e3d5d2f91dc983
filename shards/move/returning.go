package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

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
	why, err := wayback.Lost(ctx, j.from, *j.back)
	if err != nil {
		return err
	}
	if why != "" {
		if err := wayback.Close(ctx, j.to, j.from, *j.back, why); err != nil && !errors.Is(err, wayback.ErrClosed) {
			return err
		}
		return fmt.Errorf("%s: %w", why, ErrNoWayBack)
	}
	if err := j.change().Check(ctx); err != nil {
		return err
	}
	return j.verifyUnchanged(ctx)
}

// verifyUnchanged compares the shard's structure with what it was at the fence: the old schema still is like that.
func (j *job) verifyUnchanged(ctx context.Context) error {
	now, err := structure.Hash(ctx, j.src, j.cfg.Map, j.Shard)
	if err != nil {
		return err
	}
	if now != j.back.Back.Structure {
		return fmt.Errorf("the shard's tables were changed on %s since it moved there, as by migrate up: %w", j.Source, ErrNoWayBack)
	}
	return nil
}

// drain brings the old schema up to date with all that is committed. It waits while [Keep] reads the slot, which may take long: with a long transaction,
// of any database, each reader starts at the same WAL position.
func (j *job) drain(ctx context.Context) error {
	// Commits that did not wait for the disk are on it then.
	if _, err := j.from.Exec(ctx, `SELECT pg_logical_emit_message(true, 'kiloshard', 'marker')`); err != nil {
		return err
	}
	began, reported := time.Now(), time.Now()
	err := wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		err := wayback.Changes(j.to, j.from, *j.back).Drain(ctx)
		if !errors.Is(err, changes.ErrInUse) {
			return true, err
		}
		if j.limits().Exceeded(began) {
			return false, fmt.Errorf("%w: waited %s", err, j.cfg.RetryLimit)
		}
		if time.Since(reported) > watchInterval {
			reported = reported.Add(wait.Interval)
			return false, j.reportReader(ctx)
		}
		return false, nil
	})
	var refused *changes.Error
	if errors.As(err, &refused) {
		return fmt.Errorf("%w: %w", refused, ErrNoWayBack)
	}
	return err
}

// reportReader reports the process that reads the slot of the way back.
func (j *job) reportReader(ctx context.Context) error {
	const query = `SELECT format('process %s (%s)', a.pid, coalesce(nullif(a.application_name, ''), a.usename::text)) FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = $1`
	readers, err := session.Texts(ctx, j.from, query, j.back.BackSlot())
	if err == nil && len(readers) > 0 {
		j.waits("waits for %s on %s, which reads slot %s", readers[0], j.Source, j.back.BackSlot())
	}
	return err
}

// reportStandbys reports the standbys that Postgres waits for, from 17 on, before it hands out a change: one that was promoted may still name itself.
func (j *job) reportStandbys(ctx context.Context) error {
	const query = `
		SELECT slot FROM (SELECT trim(both ' "' from s) FROM unnest(string_to_array(current_setting('synchronized_standby_slots', true), ',')) s) named (slot)
		WHERE slot <> '' AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = slot AND active)`
	slots, err := session.Texts(ctx, j.from, query)
	if err == nil && len(slots) > 0 {
		j.waits("waits for a standby to read slot %s on %s: expected one, or synchronized_standby_slots without it", strings.Join(slots, ", "), j.Source)
	}
	return err
}

// showBack returns the statements that take down the fence of the move that is rolled back, and drop it, unless that would drop
// something else.
func (j *job) showBack(ctx context.Context) (string, error) {
	if err := structure.NothingOutside(ctx, j.to, j.Move); err != nil {
		return "", err
	}
	// [job.carryRights] has made the grants of today. The transaction of the statements stays open, and must not lock the row.
	if _, err := j.to.Exec(ctx, `UPDATE kiloshard.moves SET grants = NULL WHERE id = $1`, j.back.ID); err != nil {
		return "", err
	}
	return fence.Only(j.Schema) + fence.Lower(*j.back) + "DROP SCHEMA " + j.back.FenceSchema() + " CASCADE;\n", nil
}

// reopen makes the old host take writes again, in one transaction: the fence of the move that is rolled back comes down, the sequences go on
// from where they are behind the fence of the host that the shard leaves, and its ledger says so.
func (j *job) reopen(ctx context.Context) error {
	if j.back.Outcome == ledger.Returned {
		return nil
	}
	is, err := fence.Held(ctx, j.from, j.Move)
	if err != nil {
		return err
	}
	end := fence.Set(j.Schema, is) + fence.Open(j.Move) + fmt.Sprintf("UPDATE kiloshard.moves SET outcome = '%s', stepped = clock_timestamp() WHERE id = '%s'; COMMIT", ledger.Returned, j.back.ID)
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
		done = j.back.Outcome == ledger.Returned
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
	j.back.Outcome = ledger.Returned
	j.event(progress.Reopened)
	return nil
}

// openWayBack makes the publication and the slot on the target, and notes the shard's structure. The slot also has what is written before the fence, which is
// passed over.
func (j *job) openWayBack(ctx context.Context) (err error) {
	if j.Back == nil {
		return nil
	}
	if err := wayback.Publish(ctx, j.to, j.Move); err != nil {
		return err
	}
	if err := j.stream().MakeSlot(ctx, j.dst, j.to, j.BackSlot()); err != nil {
		return fmt.Errorf("slot of the way back on %s: %w", j.Target, err)
	}
	j.event(progress.WayBackMade)
	j.Back.Structure, err = structure.Hash(ctx, j.dst, j.cfg.Map, j.Shard)
	return err
}
