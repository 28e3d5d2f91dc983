package router

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/buffered"
	"github.com/kiloshard/kiloshard/router/internal/hedge"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/internal/texts"
)

// hedgeFloor is the shortest delay that HedgeP95 uses.
const hedgeFloor = time.Millisecond

// hedgeDelay returns how long to wait before a statement is sent a second time, 0 for never.
func (h *host) hedgeDelay(t *texts.Text, want Reads) time.Duration {
	switch {
	case want.Hedge <= 0 && !want.HedgeP95 || h.replicas == nil || !t.Repeats():
		return 0
	case !want.HedgeP95:
		return want.Hedge
	}
	if p95 := t.P95(); p95 > 0 {
		return max(p95, hedgeFloor)
	}
	return 0
}

// hedge runs a statement on one server and, if no answer comes within delay, also on a second one. It returns the first
// answer. If a server fails, it tries the next one, as Query does.
//
// done is false if the caller must run the statement on one server after another instead.
func (r Reader) hedge(ctx context.Context, on *host, delay time.Duration, text *texts.Text, sql string, args []any) (rows pgx.Rows, done bool, err error) {
	rs, w, began := on.replicas, r.walk(), time.Now()
	rs.Budget.Earn()
	race := hedge.Race[station, pgx.Rows]{
		Next: func() (station, error) {
			at, err := w.next(ctx)
			w.want.Wait = 0 // do not wait for the second server: the first may answer sooner
			return at, err
		},
		Read:   func(ctx context.Context, at station) (pgx.Rows, error) { return at.query(ctx, sql, args) },
		GoesOn: func(at station, err error) bool { return w.goesOn(ctx, at, err, true) },
		Drop:   pgx.Rows.Close,
		Go:     rs.Go, Delay: delay, Spend: rs.Budget.Spend, Refund: rs.Budget.Refund,
	}
	won, err := race.Run(ctx)
	if won.Second {
		rs.hedged.Add(1)
	}
	switch {
	case errors.Is(err, hedge.ErrClosing):
		return nil, false, nil // the host is closing: the caller retries on the shard's new host
	case errors.Is(err, hedge.ErrFailed):
		return session.FailedRows(w.last), true, w.last
	case err != nil && ctx.Err() != nil && won.First.placement != nil:
		err = won.First.placement.Failed(ctx.Err())
	}
	if err != nil {
		return session.FailedRows(err), true, err
	}
	text.ReaderWaited(time.Since(began))
	if won.Won {
		rs.won.Add(1)
	}
	return winnerRows(ctx, won.Answer, won.Cancel), true, nil
}

// winnerRows returns the rows of the first answer. From now on they end with the caller's ctx.
func winnerRows(ctx context.Context, rows pgx.Rows, cancel context.CancelFunc) pgx.Rows {
	if buffered.InMemory(rows) {
		cancel()
		return rows
	}
	stop := context.AfterFunc(ctx, cancel)
	return &endedRows{rows, func() {
		stop()
		cancel()
	}}
}
