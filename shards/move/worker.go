package move

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kiloshard/kiloshard/shards/move/internal/checks"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// maxWorkerErrors is after how many errors of the target's worker a move gives up.
const maxWorkerErrors = 5

// workerWatch counts the errors of the target's worker, which applies what is written on the source, while a move waits for it. Postgres
// begins another worker after each, which fails alike as long as nobody puts right what it fails at.
type workerWatch struct {
	job     *job
	looked  time.Time
	failing time.Time // since when
	errors  int       // before that
	flushed string    // what the target has confirmed
}

// look returns an error if it has failed too often since the target confirmed something, or since the first look. Postgres counts
// as long as there is a subscription, also what was put right since.
func (w *workerWatch) look(ctx context.Context) error {
	now, j := time.Now(), w.job
	first := w.looked.IsZero()
	if !first && now.Sub(w.looked) < slotEvery {
		return nil
	}
	w.looked = now
	var errors int
	var flushed string
	const counted = `SELECT coalesce(sum(apply_error_count), 0)::int FROM pg_stat_subscription_stats WHERE subname = $1`
	if err := j.to.QueryRow(ctx, counted, j.made()).Scan(&errors); err != nil {
		return fmt.Errorf("subscription on %s: %w", j.Target, err)
	}
	const confirmed = `SELECT coalesce((SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = $1), '')`
	if err := j.from.QueryRow(ctx, confirmed, j.made()).Scan(&flushed); err != nil {
		return err
	}
	if first || flushed != w.flushed {
		w.errors, w.flushed, w.failing = errors, flushed, now
	}
	failed := errors - w.errors
	if failed >= maxWorkerErrors || failed > 0 && j.outOfPatience(w.failing) {
		return fmt.Errorf("the worker of subscription %s on %s has failed %d times: %s; put that right there, and see kiloshard move resume, or move abort%s", j.made(), j.Target, failed, w.why(ctx), w.lost(ctx))
	}
	return nil
}

// why says what is known of why it has failed: a row that was written since the checks may name what the target lacks.
func (w *workerWatch) why(ctx context.Context) string {
	lacking, err := checks.NamesOnTarget(ctx, w.job.from, w.job.to, w.job.Schema)
	if err != nil || len(lacking) == 0 {
		return fmt.Sprintf("the log of %s says at which row, and why", w.job.Target)
	}
	return strings.Join(lacking, "; ")
}

// lost says what cannot be put right.
func (w *workerWatch) lost(ctx context.Context) (text string) {
	refused, err := session.Texts(ctx, w.job.from, checks.RefusedTruncates, w.job.Schema)
	if err == nil && len(refused) > 0 {
		text = fmt.Sprintf("; a TRUNCATE … CASCADE of %s, takes move abort, and another move", strings.Join(refused, ", or of "))
	}
	return text
}
