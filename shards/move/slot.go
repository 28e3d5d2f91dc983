package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

const (
	slotEvery  = time.Second // how often the slot is looked at
	lostStatus = "lost"      // of WAL that the slot needs
)

// slotWatch looks at a move's slot while the move waits for the target. A target that cannot connect to the source counts no
// error: its worker ends, and another one is begun, over and over.
type slotWatch struct {
	job                *job
	looked, used, told time.Time // all begin when the wait does
}

// look reports that the target has not connected for some time. It returns an error if it never can again.
func (w *slotWatch) look(ctx context.Context) error {
	now := time.Now()
	if w.looked.IsZero() {
		w.looked, w.used, w.told = now, now, now
	}
	if now.Sub(w.looked) < slotEvery {
		return nil
	}
	w.looked = now
	j := w.job
	active, err := j.slotWorks(ctx, "move abort, and another move")
	if err != nil {
		return err
	}
	if active {
		w.used, w.told = now, now
		return nil
	}
	switch there, enabled, err := j.subscribed(ctx); {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("subscription %s is not on %s any more: expected move abort, and another move", j.made(), j.Target)
	case !enabled:
		return fmt.Errorf("somebody has disabled subscription %s on %s: expected ALTER SUBSCRIPTION %s ENABLE there, and move resume", j.made(), j.Target, session.Name(j.made()))
	case now.Sub(w.used) > wait.Interval && j.outOfPatience(w.used):
		return fmt.Errorf("%s has not connected to %s within %s: its server's log says why", j.Target, j.Source, j.cfg.Patience)
	case now.Sub(w.told) > wait.Interval:
		w.told = now
		j.event("waits for %s to connect to %s: its server's log says why it does not", j.Target, j.Source)
	}
	return nil
}

// slotWorks tells whether somebody uses the slot. It returns an error, which says what to do, if nobody ever can again.
func (j *job) slotWorks(ctx context.Context, remedy string) (active bool, err error) {
	var status string
	const query = `SELECT active, coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = $1`
	err = j.from.QueryRow(ctx, query, j.made()).Scan(&active, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, fmt.Errorf("slot %s is not on %s any more: expected %s", j.made(), j.Source, remedy)
	case err == nil && status == lostStatus:
		return false, fmt.Errorf("slot %s on %s has lost WAL (max_slot_wal_keep_size): expected %s", j.made(), j.Source, remedy)
	}
	return active, err
}

// slotWorksYet returns an error if the slot is of no use any more, before anybody uses it.
func (j *job) slotWorksYet(ctx context.Context) error {
	_, err := j.slotWorks(ctx, "move resume, which begins the copy anew")
	return err
}

// blockerWatch looks for transactions that keep Postgres from making a slot: it waits for all that are older, in any database of
// the server.
type blockerWatch struct {
	job                 *job
	on                  *pgx.Conn
	host, slot          string
	began, looked, told time.Time
}

// look reports whom the slot waits for. It returns an error once that has taken too long.
func (w *blockerWatch) look(ctx context.Context) error {
	now, j := time.Now(), w.job
	if w.began.IsZero() {
		w.began, w.looked = now, now
	}
	if now.Sub(w.looked) < slotEvery {
		return nil
	}
	w.looked = now
	const query = `
		SELECT DISTINCT coalesce('process ' || b.pid || coalesce(', ' || b.state, ''), 'a prepared transaction')
		FROM pg_replication_slots s CROSS JOIN unnest(pg_blocking_pids(s.active_pid)) p LEFT JOIN pg_stat_activity b ON b.pid = p
		WHERE s.slot_name = $1`
	blockers, err := session.Texts(ctx, w.on, query, w.slot)
	switch {
	case err != nil:
		return err
	case len(blockers) == 0:
		w.began = now
	case j.outOfPatience(w.began):
		return fmt.Errorf("no slot on %s within %s: an older transaction of %s is open", w.host, j.cfg.Patience, strings.Join(blockers, "; "))
	case now.Sub(w.told) > wait.Interval:
		w.told = now
		waits := fmt.Sprintf("waits for an older transaction of %s, on %s", strings.Join(blockers, "; "), w.host)
		j.event("%s", waits)
		return w.note(ctx, waits)
	}
	return nil
}

// note has the ledger say what the slot waits for, for move status; empty for nothing any more.
func (w *blockerWatch) note(ctx context.Context, waits string) error {
	_, err := w.job.from.Exec(ctx, `UPDATE kiloshard.moves SET error = nullif($2, '') WHERE id = $1 AND outcome IS NULL`, w.job.ID, waits)
	return err
}

// makeSlot makes a slot on a host, in a session of its own. From Postgres 17 on standbys with sync_replication_slots have it, too.
func (j *job) makeSlot(ctx context.Context, host shards.Host, on *pgx.Conn, slot string) error {
	conn, err := session.Open(ctx, host)
	if err != nil {
		return err
	}
	defer session.Close(ctx, conn)
	return j.untilMade(ctx, host, on, slot, func(ctx context.Context) error {
		return j.untilFree(ctx, host.Name, func() error {
			const query = `
				SELECT CASE WHEN current_setting('server_version_num')::int >= 170000 THEN 'SELECT pg_create_logical_replication_slot($1, ''pgoutput'', failover => true)'
					ELSE 'SELECT pg_create_logical_replication_slot($1, ''pgoutput'')' END`
			var create string
			if err := conn.QueryRow(ctx, query).Scan(&create); err != nil {
				return err
			}
			_, err := conn.Exec(ctx, create, slot)
			return err
		})
	})
}

// exportedSlot is a session that has made a slot, and holds a snapshot of where that begins as long as it does nothing else.
type exportedSlot struct {
	conn     *pgx.Conn
	snapshot string // its name
}

func (s exportedSlot) close(ctx context.Context) { session.Close(ctx, s.conn) }

// makeExportedSlot makes the move's slot.
func (j *job) makeExportedSlot(ctx context.Context) (s exportedSlot, err error) {
	err = j.untilFree(ctx, j.Source, func() (err error) {
		s.conn, err = session.Open(ctx, j.src, func(cfg *pgx.ConnConfig) { cfg.RuntimeParams["replication"] = "database" })
		return err
	})
	if err != nil {
		return s, err
	}
	err = j.untilMade(ctx, j.src, j.from, j.made(), func(ctx context.Context) error {
		return j.untilFree(ctx, j.Source, func() error {
			results, err := s.conn.PgConn().Exec(ctx, "CREATE_REPLICATION_SLOT "+session.Name(j.made())+" LOGICAL pgoutput (SNAPSHOT 'export')").ReadAll()
			if err == nil {
				s.snapshot = string(results[0].Rows[0][snapshotColumn])
			}
			return err
		})
	})
	if err != nil {
		s.close(ctx)
	}
	return s, err
}

// snapshotColumn is where CREATE_REPLICATION_SLOT answers with the name of the snapshot.
const snapshotColumn = 2

// untilMade waits until a slot is made, and says whom that waits for.
func (j *job) untilMade(ctx context.Context, host shards.Host, on *pgx.Conn, slot string, create func(ctx context.Context) error) error {
	making, giveUp := context.WithCancel(ctx)
	var made error
	done := make(chan struct{})
	go func() {
		defer close(done)
		made = create(making)
	}()
	defer func() { giveUp(); <-done }()
	watch := blockerWatch{job: j, on: on, host: host.Name, slot: slot}
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		select {
		case <-done:
			if made == nil && !watch.told.IsZero() {
				return true, watch.note(ctx, "")
			}
			return true, made
		default:
			return false, watch.look(ctx)
		}
	})
}
