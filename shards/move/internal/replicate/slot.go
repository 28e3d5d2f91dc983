package replicate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

// blockerWatch looks for transactions that keep Postgres from making a slot: it waits for all older ones, in any database of
// the server.
type blockerWatch struct {
	Stream

	on                      *pgx.Conn
	host, slot              string
	began, looked, reported time.Time
}

// look reports the transactions that the slot waits for. It returns an error once that has taken too long.
func (w *blockerWatch) look(ctx context.Context) error {
	now := time.Now()
	if w.began.IsZero() {
		w.began, w.looked = now, now
	}
	if now.Sub(w.looked) < watchInterval {
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
	case w.Limits.Exceeded(w.began):
		return fmt.Errorf("no slot on %s within %s: an older transaction of %s is open", w.host, w.Limits.Retry, strings.Join(blockers, "; "))
	case now.Sub(w.reported) > wait.Interval:
		w.reported = now
		waits := fmt.Sprintf("waits for an older transaction of %s, on %s", strings.Join(blockers, "; "), w.host)
		w.Limits.Report("%s", waits)
		return w.note(ctx, waits)
	}
	return nil
}

// note keeps what the slot waits for in the source's ledger, for move status; empty for nothing any more.
func (w *blockerWatch) note(ctx context.Context, waits string) error {
	_, err := w.From.Exec(ctx, `UPDATE kiloshard.moves SET error = nullif($2, '') WHERE id = $1 AND outcome IS NULL`, w.ID, waits)
	return err
}

// MakeSlot makes a slot on a host, in a session of its own; on is another session there. From Postgres 17 on standbys with sync_replication_slots have it, too.
func (s Stream) MakeSlot(ctx context.Context, host shards.Host, on *pgx.Conn, slot string) error {
	conn, err := session.Open(ctx, host)
	if err != nil {
		return err
	}
	defer session.Close(ctx, conn)
	return s.untilMade(ctx, host, on, slot, func(ctx context.Context) error {
		return s.untilFree(ctx, host.Name, func() error {
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

// Exported is a session that has made a slot, and holds a snapshot of where the slot begins as long as it does nothing else.
type Exported struct {
	Snapshot string // its name

	conn *pgx.Conn
}

// Close ends the session.
func (e Exported) Close(ctx context.Context) { session.Close(ctx, e.conn) }

// ExportSlot makes the move's slot. The caller closes the session that it returns, unless there is an error.
func (s Stream) ExportSlot(ctx context.Context) (e Exported, err error) {
	err = s.untilFree(ctx, s.Source, func() (err error) {
		e.conn, err = session.Open(ctx, s.SourceHost, func(cfg *pgx.ConnConfig) { cfg.RuntimeParams["replication"] = "database" })
		return err
	})
	if err != nil {
		return e, err
	}
	err = s.untilMade(ctx, s.SourceHost, s.From, s.Slot(), func(ctx context.Context) error {
		return s.untilFree(ctx, s.Source, func() error {
			results, err := e.conn.PgConn().Exec(ctx, "CREATE_REPLICATION_SLOT "+session.Name(s.Slot())+" LOGICAL pgoutput (SNAPSHOT 'export')").ReadAll()
			if err == nil {
				e.Snapshot = string(results[0].Rows[0][snapshotColumn])
			}
			return err
		})
	})
	if err != nil {
		e.Close(ctx)
	}
	return e, err
}

// snapshotColumn is the column of CREATE_REPLICATION_SLOT's answer with the name of the snapshot.
const snapshotColumn = 2

// untilMade waits until a slot is made, and reports the transactions that it waits for.
func (s Stream) untilMade(ctx context.Context, host shards.Host, on *pgx.Conn, slot string, create func(ctx context.Context) error) error {
	making, giveUp := context.WithCancel(ctx)
	var made error
	done := make(chan struct{})
	go func() {
		defer close(done)
		made = create(making)
	}()
	defer func() { giveUp(); <-done }()
	watch := blockerWatch{Stream: s, on: on, host: host.Name, slot: slot}
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		select {
		case <-done:
			if made == nil && !watch.reported.IsZero() {
				return true, watch.note(ctx, "")
			}
			return true, made
		default:
			return false, watch.look(ctx)
		}
	})
}

// untilFree calls make until it no longer fails because all slots or WAL senders are in use.
func (s Stream) untilFree(ctx context.Context, host string, make func() error) error {
	began, reported := time.Now(), time.Now()
	return wait.Until(ctx, 0, wait.Slowly, nil, func() (bool, error) {
		err := make()
		switch session.Code(err) {
		default:
			return true, err
		case "53400", "53300": // all slots are in use; all WAL senders are
		}
		if s.Limits.Exceeded(began) {
			return false, err
		}
		if time.Since(reported) > wait.Interval {
			reported = time.Now()
			s.Limits.Report("waits for %s: %v", host, err)
		}
		return false, nil
	})
}
