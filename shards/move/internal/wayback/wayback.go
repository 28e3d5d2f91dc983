// Package wayback keeps the way back of a shard that has moved: a publication and a slot on the host that it has moved to, whose changes are applied to the old
// schema. Package changes applies them, since a subscription finds tables only by the names that they have on the publisher, and the old schema stays
// behind its fence.
package wayback

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/catalog"
	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// ErrClosed says that the way back is closed.
var ErrClosed = errors.New("the way back is closed")

// Publish makes the publication on the target, in place of one that an earlier try has left. The caller makes the slot next.
func Publish(ctx context.Context, target *pgx.Conn, m ledger.Move) error {
	if err := Remove(ctx, target, m); err != nil {
		return err
	}
	tables, err := catalog.Replicated(ctx, target, m.Schema)
	if err != nil {
		return err
	}
	statement := "CREATE PUBLICATION " + session.Name(m.BackSlot())
	if len(tables) > 0 {
		statement += " FOR TABLE " + strings.Join(tables, ", ")
	}
	if err := session.Run(ctx, target, statement); err != nil {
		return fmt.Errorf("publication of the way back on %s: %w", m.Target, err)
	}
	return nil
}

// Begin notes where the way back begins: now, as the target has all that the source has, and writers wait.
func Begin(ctx context.Context, target *pgx.Conn, back *ledger.WayBack) error {
	return target.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text, `+timeline).Scan(&back.LSN, &back.Timeline)
}

// Remove drops the slot and the publication on the target, if they are there.
func Remove(ctx context.Context, target *pgx.Conn, m ledger.Move) error {
	if err := replicate.DropSlot(ctx, target, m.Target, m.BackSlot()); err != nil {
		return err
	}
	return session.Run(ctx, target, "DROP PUBLICATION IF EXISTS "+session.Name(m.BackSlot()))
}

// Close ends the way back of a move, and notes why in the ledger. It returns [ErrClosed] if the move is rolled back already, or a
// rollback that began in time is under way.
func Close(ctx context.Context, source, target *pgx.Conn, m ledger.Move, why string) error {
	const query = `UPDATE kiloshard.moves SET back = back || jsonb_build_object('closed', $2::text) WHERE id = $1 AND side = 'source' AND outcome = 'moved'
		AND NOT EXISTS (SELECT FROM kiloshard.moves r WHERE r.returns = $1 AND r.outcome IS NULL)`
	switch tag, err := source.Exec(ctx, query, m.ID, why); {
	case err != nil:
		return err
	case tag.RowsAffected() != 1:
		return ErrClosed
	}
	return Remove(ctx, target, m)
}

// Changes is the stream of writes on the target since the switch, to the old schema on the source.
func Changes(source, target *pgx.Conn, m ledger.Move) changes.Stream {
	var now int // the target's timeline
	return changes.Stream{
		From: target, To: source, Slot: m.BackSlot(), Publication: m.BackSlot(), Original: m.Schema, Schema: m.OldSchema(),
		Applied: func(ctx context.Context, tx pgx.Tx) (changes.LSN, error) {
			var lsn string
			var of int
			const query = `SELECT back ->> 'lsn', (back ->> 'timeline')::int FROM kiloshard.moves
				WHERE id = $1 AND side = 'source' AND outcome = 'moved' AND back ->> 'closed' = '' FOR UPDATE`
			if err := tx.QueryRow(ctx, query, m.ID).Scan(&lsn, &of); errors.Is(err, pgx.ErrNoRows) {
				return 0, ErrClosed
			} else if err != nil {
				return 0, err
			}
			applied, err := changes.ParseLSN(lsn)
			if err != nil {
				return 0, err
			}
			if now, err = onTimeline(ctx, target, m.Target, of, applied); err != nil {
				return 0, err
			}
			return applied, nil
		},
		Note: func(ctx context.Context, tx pgx.Tx, lsn changes.LSN) error {
			_, err := tx.Exec(ctx, `UPDATE kiloshard.moves SET back = back || jsonb_build_object('lsn', $2::text, 'timeline', $3::int) WHERE id = $1`, m.ID, lsn.String(), now)
			return err
		},
	}
}

// Lost returns why a way back cannot be used any more, empty if it can.
func Lost(ctx context.Context, target *pgx.Conn, m ledger.Move) (why string, err error) {
	var status, invalid string
	var kept int64
	const query = `
		SELECT coalesce(wal_status, ''), coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(to_jsonb(s) ->> 'invalidation_reason', '')
		FROM pg_replication_slots s WHERE slot_name = $1` // Postgres has the reason since 17
	err = target.QueryRow(ctx, query, m.BackSlot()).Scan(&status, &kept, &invalid)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Sprintf("slot %s is not on %s any more", m.BackSlot(), m.Target), nil
	case err != nil:
		return "", err
	case invalid == "idle_timeout":
		return fmt.Sprintf("nobody has read slot %s on %s for longer than idle_replication_slot_timeout", m.BackSlot(), m.Target), nil
	case invalid != "" && invalid != "wal_removed":
		return fmt.Sprintf("slot %s on %s is invalid: %s", m.BackSlot(), m.Target, invalid), nil
	case status == "lost":
		return fmt.Sprintf("slot %s on %s has lost WAL (max_slot_wal_keep_size)", m.BackSlot(), m.Target), nil
	case time.Now().After(m.BackUntil()):
		return "its time is over", nil
	case kept > m.Back.WAL:
		return fmt.Sprintf("slot %s on %s keeps %d bytes of WAL, more than %d", m.BackSlot(), m.Target, kept, m.Back.WAL), nil
	}
	return "", nil
}
