package replicate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wait"
)

const (
	watchInterval = time.Second // between two looks at the slot, or the worker
	lostStatus    = "lost"      // of WAL that the slot needs
)

// slotWatch looks at a move's slot while the move waits for the target. A target that cannot connect to the source counts no
// error: Postgres starts one worker after the other.
type slotWatch struct {
	Stream

	looked, used, reported time.Time // all begin when the wait does
}

// look reports that the target has not connected for some time. It returns an error if it never can again.
func (w *slotWatch) look(ctx context.Context) error {
	now, s := time.Now(), w.Stream
	if w.looked.IsZero() {
		w.looked, w.used, w.reported = now, now, now
	}
	if now.Sub(w.looked) < watchInterval {
		return nil
	}
	w.looked = now
	active, err := s.slotInUse(ctx, "move abort, and another move")
	if err != nil {
		return err
	}
	if active {
		w.used, w.reported = now, now
		return nil
	}
	switch there, enabled, err := s.subscribed(ctx); {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("subscription %s is not on %s any more: expected move abort, and another move", s.Slot(), s.Target)
	case !enabled:
		return fmt.Errorf("somebody has disabled subscription %s on %s: expected ALTER SUBSCRIPTION %s ENABLE there, and move resume", s.Slot(), s.Target, session.Name(s.Slot()))
	case now.Sub(w.used) > wait.Interval && s.Limits.Exceeded(w.used):
		return fmt.Errorf("%s has not connected to %s within %s: its server's log says why", s.Target, s.Source, s.Limits.Retry)
	case now.Sub(w.reported) > wait.Interval:
		w.reported = now
		s.Limits.Report("waits for %s to connect to %s: its server's log says why it does not", s.Target, s.Source)
	}
	return nil
}

// slotInUse reports whether a session uses the slot. If none ever can again, the error names the remedy.
func (s Stream) slotInUse(ctx context.Context, remedy string) (active bool, err error) {
	var status string
	const query = `SELECT active, coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = $1`
	err = s.From.QueryRow(ctx, query, s.Slot()).Scan(&active, &status)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, fmt.Errorf("slot %s is not on %s any more: expected %s", s.Slot(), s.Source, remedy)
	case err == nil && status == lostStatus:
		return false, fmt.Errorf("slot %s on %s has lost WAL (max_slot_wal_keep_size): expected %s", s.Slot(), s.Source, remedy)
	}
	return active, err
}

// CheckSlot returns an error if the slot is lost before the subscription uses it.
func (s Stream) CheckSlot(ctx context.Context) error {
	_, err := s.slotInUse(ctx, "move resume, which starts the copy again")
	return err
}
