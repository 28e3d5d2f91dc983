package replicate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// maxWorkerErrors is the number of errors of the target's worker after which a move gives up.
const maxWorkerErrors = 5

// workerWatch counts the errors of the target's worker, which applies the writes of the source, while a move waits for it. Postgres
// starts another worker after each error, which fails in the same way until the cause is removed.
type workerWatch struct {
	Stream

	looked  time.Time
	failing time.Time // since when
	errors  int       // before that
	flushed string    // what the target has confirmed
}

// look returns an error if it has failed too often since the target confirmed something, or since the first look. Postgres counts
// as long as there is a subscription, and includes errors whose cause is removed.
func (w *workerWatch) look(ctx context.Context) error {
	now, s := time.Now(), w.Stream
	first := w.looked.IsZero()
	if !first && now.Sub(w.looked) < watchInterval {
		return nil
	}
	w.looked = now
	var errors int
	var flushed string
	const counted = `SELECT coalesce(sum(apply_error_count), 0)::int FROM pg_stat_subscription_stats WHERE subname = $1`
	if err := s.To.QueryRow(ctx, counted, s.Slot()).Scan(&errors); err != nil {
		return fmt.Errorf("subscription on %s: %w", s.Target, err)
	}
	const confirmed = `SELECT coalesce((SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1), '')`
	if err := s.From.QueryRow(ctx, confirmed, s.Slot()).Scan(&flushed); err != nil {
		return err
	}
	if first || flushed != w.flushed {
		w.errors, w.flushed, w.failing = errors, flushed, now
	}
	failed := errors - w.errors
	if failed >= maxWorkerErrors || failed > 0 && s.Limits.Exceeded(w.failing) {
		return fmt.Errorf("the worker of subscription %s on %s has failed %d times: %s; put that right there, and see kiloshard move resume, or move abort%s", s.Slot(), s.Target, failed, w.why(ctx), w.lost(ctx))
	}
	return nil
}

// why returns the known cause: a row written since the checks may name what the target lacks.
func (w *workerWatch) why(ctx context.Context) string {
	missing, err := checks.NamesOnTarget(ctx, w.From, w.To, w.Schema)
	if err != nil || len(missing) == 0 {
		return fmt.Sprintf("the log of %s says at which row, and why", w.Target)
	}
	return strings.Join(missing, "; ")
}

// lost returns the errors that only another move removes.
func (w *workerWatch) lost(ctx context.Context) (text string) {
	refused, err := session.Texts(ctx, w.From, checks.RefusedTruncates, w.Schema)
	if err == nil && len(refused) > 0 {
		text = fmt.Sprintf("; a TRUNCATE … CASCADE of %s, takes move abort, and another move", strings.Join(refused, ", or of "))
	}
	return text
}
