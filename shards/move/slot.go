package move

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// How often the slot is looked at, and how long nobody may use it before that is reported.
const (
	slotEvery  = time.Second
	unusedFor  = 5 * time.Second
	lostStatus = "lost" // of WAL that the slot needs
)

// slotWatch looks at a move's slot while the move waits for the target. A target that cannot connect to the source counts no
// error: its worker ends, and another one is begun, over and over.
type slotWatch struct {
	job    *job
	looked time.Time // begins when the wait does
	used   time.Time
}

// look reports that the target has not connected for some time. It returns an error if it never can again.
func (w *slotWatch) look(ctx context.Context) error {
	now := time.Now()
	if w.looked.IsZero() {
		w.looked, w.used = now, now
	}
	if now.Sub(w.looked) < slotEvery {
		return nil
	}
	w.looked = now
	j := w.job
	var active bool
	var status string
	const query = `SELECT active, coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = $1`
	err := j.from.QueryRow(ctx, query, j.made()).Scan(&active, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("slot %s is not on %s any more: expected move abort, and another move", j.made(), j.Source)
	case err != nil:
		return err
	case status == lostStatus:
		return fmt.Errorf("slot %s on %s has lost WAL (max_slot_wal_keep_size): expected move abort, and another move", j.made(), j.Source)
	case active:
		w.used = now
	case now.Sub(w.used) > unusedFor:
		w.used = now
		j.event("waits for %s to connect to %s: its server's log says why it does not", j.Target, j.Source)
	}
	return nil
}
