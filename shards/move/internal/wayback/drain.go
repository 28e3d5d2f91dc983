package wayback

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// readerWait is how long another session may read the slot before [Drain] reports it.
const readerWait = time.Second

// Drain brings the old schema up to date with all that is committed on the target. It waits while another session reads the slot, which may take long: with a
// long transaction, of any database, each reader starts at the same WAL position. The error is a [changes.Error] if the old schema does not accept a change.
func Drain(ctx context.Context, source, target *pgx.Conn, m ledger.Move, limits wait.Limits) error {
	// Commits that did not wait for the disk are on it then.
	if _, err := target.Exec(ctx, `SELECT pg_logical_emit_message(true, 'kiloshard', 'marker')`); err != nil {
		return err
	}
	began, reported := time.Now(), time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		err := Changes(source, target, m).Drain(ctx)
		if !errors.Is(err, changes.ErrInUse) {
			return true, err
		}
		if limits.Exceeded(began) {
			return false, fmt.Errorf("%w: waited %s", err, limits.Retry)
		}
		if time.Since(reported) > readerWait {
			reported = reported.Add(wait.Interval)
			return false, reportReader(ctx, target, m, limits)
		}
		return false, nil
	})
}

// reportReader reports the process that reads the slot.
func reportReader(ctx context.Context, target *pgx.Conn, m ledger.Move, limits wait.Limits) error {
	const query = `SELECT format('process %s (%s)', a.pid, coalesce(nullif(a.application_name, ''), a.usename::text)) FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = $1`
	readers, err := session.Texts(ctx, target, query, m.BackSlot())
	if err == nil && len(readers) > 0 {
		limits.Report("waits for %s on %s, which reads slot %s", readers[0], m.Target, m.BackSlot())
	}
	return err
}

// ReportStandbys reports the standbys that Postgres waits for, from 17 on, before it hands out a change: one that was promoted may still name itself.
func ReportStandbys(ctx context.Context, target *pgx.Conn, m ledger.Move, limits wait.Limits) error {
	const query = `
		SELECT slot FROM (SELECT trim(both ' "' from s) FROM unnest(string_to_array(current_setting('synchronized_standby_slots', true), ',')) s) named (slot)
		WHERE slot <> '' AND NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = slot AND active)`
	slots, err := session.Texts(ctx, target, query)
	if err == nil && len(slots) > 0 {
		limits.Report("waits for a standby to read slot %s on %s: expected one, or synchronized_standby_slots without it", strings.Join(slots, ", "), m.Target)
	}
	return err
}
