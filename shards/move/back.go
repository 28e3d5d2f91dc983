package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/drift"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/changes"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// WayBack is how a shard that has moved can go back without a copy. Before the cutover the target gets a publication of the shard's
// tables, and a slot. What is written there after the switch is applied to the old schema, which stays behind its fence: nobody
// can use it until the shard has gone back.
type WayBack struct {
	For       time.Duration `json:"for"`       // from the fence on, in nanoseconds
	WAL       int64         `json:"wal"`       // bytes that the slot may keep
	LSN       string        `json:"lsn"`       // on the target: what was committed there before is in the old schema
	Timeline  int           `json:"timeline"`  // of the LSN; 0 if an older release has noted that
	Structure string        `json:"structure"` // a hash of the shard's structure at the fence
	Closed    string        `json:"closed"`    // why there is no way back any more; empty while there is
}

func (c Config) wayBack() *WayBack {
	if c.RollbackFor <= 0 {
		return nil
	}
	return &WayBack{For: c.RollbackFor, WAL: c.RollbackWAL}
}

// BackUntil returns until when a move can be rolled back. It is zero for one that cannot be, or not any more.
func (m Move) BackUntil() time.Time {
	if m.Outcome != Moved || m.Fenced == nil || m.Back == nil || m.Back.Closed != "" {
		return time.Time{}
	}
	return m.Fenced.Add(m.Back.For)
}

// way is the name of the publication and the slot of the way back.
func (m Move) way() string { return m.made() + "_back" }

// copied is the schema on the target that the rows come to.
func (j *job) copied() string {
	if j.back != nil {
		return j.back.moved()
	}
	return j.Schema
}

// openWayBack makes the publication and the slot on the target. What is written before the fence comes to the slot as well, and is
// passed over.
func (j *job) openWayBack(ctx context.Context) error {
	if j.Back == nil {
		return nil
	}
	if err := j.removeWayBack(ctx, j.to); err != nil {
		return err
	}
	tables, err := tablesOf(ctx, j.to, j.Schema)
	if err != nil {
		return err
	}
	statement := "CREATE PUBLICATION " + session.Name(j.way())
	if len(tables) > 0 {
		statement += " FOR TABLE " + strings.Join(tables, ", ")
	}
	if err := session.Run(ctx, j.to, statement); err != nil {
		return fmt.Errorf("publication of the way back on %s: %w", j.Target, err)
	}
	if err := j.makeSlot(ctx, j.dst, j.to, j.way()); err != nil {
		return fmt.Errorf("slot of the way back on %s: %w", j.Target, err)
	}
	j.event("way back made")
	return j.readStructure(ctx)
}

// readStructure notes what the shard looks like before the cutover.
func (j *job) readStructure(ctx context.Context) (err error) {
	j.Back.Structure, err = structureOn(ctx, j.dst, j.cfg.Map, j.Shard)
	return err
}

// structureOn returns a hash of a shard's structure.
func structureOn(ctx context.Context, host shards.Host, m *shards.Map, n shards.Number) (string, error) {
	conn, err := drift.Connect(ctx, host)
	if err != nil {
		return "", err
	}
	defer session.Close(ctx, conn)
	found, err := drift.Read(ctx, conn, m, n)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, l := range found[n] {
		lines = append(lines, l.Key+"\n"+l.Text)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:]), nil
}

// wayBackFrom returns the way back as it begins now: all that the source has is on the target, and writers wait.
func (j *job) wayBackFrom(ctx context.Context) (*WayBack, error) {
	if j.Back == nil {
		return nil, nil
	}
	return j.Back, j.to.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text, `+timeline).Scan(&j.Back.LSN, &j.Back.Timeline)
}

// removeWayBack drops the slot and the publication on the host that the shard has moved to.
func (m Move) removeWayBack(ctx context.Context, target *pgx.Conn) error {
	const drop = `
		SELECT CASE WHEN active THEN pg_terminate_backend(active_pid)::text ELSE pg_drop_replication_slot(slot_name)::text END
		FROM pg_replication_slots WHERE slot_name = $1 AND database = current_database()`
	err := wait.Until(ctx, session.CleanUpLimit, wait.Slowly, fmt.Errorf("slot %s on %s is still in use", m.way(), m.Target), func() (bool, error) {
		tag, err := target.Exec(ctx, drop, m.way())
		if session.Code(err) == "55006" { // it has become active
			return false, nil
		}
		return err == nil && tag.RowsAffected() == 0, err
	})
	if err != nil {
		return err
	}
	return session.Run(ctx, target, "DROP PUBLICATION IF EXISTS "+session.Name(m.way()))
}

// closeWayBack ends the way back of a move, and says why in the ledger. It returns errWayClosed if the move is rolled back already, or a
// rollback that began in time is under way.
func (m Move) closeWayBack(ctx context.Context, source, target *pgx.Conn, why string) error {
	const query = `UPDATE kiloshard.moves SET back = back || jsonb_build_object('closed', $2::text) WHERE id = $1 AND side = 'source' AND outcome = 'moved'
		AND NOT EXISTS (SELECT FROM kiloshard.moves r WHERE r.returns = $1 AND r.outcome IS NULL)`
	switch tag, err := source.Exec(ctx, query, m.ID, why); {
	case err != nil:
		return err
	case tag.RowsAffected() != 1:
		return errWayClosed
	}
	return m.removeWayBack(ctx, target)
}

// changes is what was written on the target since the switch, and the old schema on the source, which it is applied to.
func (m Move) changes(source, target *pgx.Conn) changes.Stream {
	var now int // the target's timeline
	return changes.Stream{
		From: target, To: source, Slot: m.way(), Publication: m.way(), Original: m.Schema, Schema: m.moved(),
		Applied: func(ctx context.Context, tx pgx.Tx) (changes.LSN, error) {
			var lsn string
			var of int
			const query = `SELECT back ->> 'lsn', coalesce((back ->> 'timeline')::int, 0) FROM kiloshard.moves
				WHERE id = $1 AND side = 'source' AND outcome = 'moved' AND back ->> 'closed' = '' FOR UPDATE`
			if err := tx.QueryRow(ctx, query, m.ID).Scan(&lsn, &of); errors.Is(err, pgx.ErrNoRows) {
				return 0, errWayClosed
			} else if err != nil {
				return 0, err
			}
			applied, err := changes.ParseLSN(lsn)
			if err != nil {
				return 0, err
			}
			if now, err = m.onTimeline(ctx, target, of, applied); err != nil {
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

// errWayClosed says that a way back is no more.
var errWayClosed = errors.New("the way back is closed")

func ignoring(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}

// wayLost returns why a way back cannot be used any more, empty if it can.
func (m Move) wayLost(ctx context.Context, target *pgx.Conn) (why string, err error) {
	var status, invalid string
	var kept int64
	const query = `
		SELECT coalesce(wal_status, ''), coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(to_jsonb(s) ->> 'invalidation_reason', '')
		FROM pg_replication_slots s WHERE slot_name = $1` // Postgres has the reason since 17
	err = target.QueryRow(ctx, query, m.way()).Scan(&status, &kept, &invalid)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Sprintf("slot %s is not on %s any more", m.way(), m.Target), nil
	case err != nil:
		return "", err
	case invalid == "idle_timeout":
		return fmt.Sprintf("nobody has read slot %s on %s for longer than idle_replication_slot_timeout", m.way(), m.Target), nil
	case invalid != "" && invalid != "wal_removed":
		return fmt.Sprintf("slot %s on %s is invalid: %s", m.way(), m.Target, invalid), nil
	case status == lostStatus:
		return fmt.Sprintf("slot %s on %s has lost WAL (max_slot_wal_keep_size)", m.way(), m.Target), nil
	case time.Now().After(m.BackUntil()):
		return "its time is over", nil
	case kept > m.Back.WAL:
		return fmt.Sprintf("slot %s on %s keeps %d bytes of WAL, more than %d", m.way(), m.Target, kept, m.Back.WAL), nil
	}
	return "", nil
}
