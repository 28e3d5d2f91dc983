package router

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/hedge"
	"github.com/kiloshard/kiloshard/router/internal/texts"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// hedgeFloor is the shortest time that HedgeP95 comes to.
const hedgeFloor = time.Millisecond

// hedgeDelay returns after how long a statement is to be sent a second time, 0 for never.
func (h *host) hedgeDelay(t *texts.Text, want Reads) time.Duration {
	switch {
	case want.Hedge <= 0 && !want.HedgeP95 || h.replicas == nil || !t.Reads:
		return 0
	case !want.HedgeP95:
		return want.Hedge
	}
	if p95 := t.P95(); p95 > 0 {
		return max(p95, hedgeFloor)
	}
	return 0
}

// hedge runs a statement on one server, and if that has not answered after a while on another one too. What either
// answers first is returned. A server that fails is made up for by the next one, as in Query.
//
// It returns false if the statement is to be sent once, to one server after another.
func (r Reader) hedge(ctx context.Context, on *host, delay time.Duration, text *texts.Text, sql string, args []any) (rows pgx.Rows, done bool, err error) {
	rs, w, began := on.replicas, r.walk(), time.Now()
	rs.Budget.Earn()
	race := hedge.Race[station, pgx.Rows]{
		Next: func() (station, error) {
			at, err := w.next(ctx)
			w.want.Wait = 0 // what has been sent may be answered sooner
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
		return nil, false, nil // it goes to the shard's new host
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
	return taken(ctx, won.Answer, won.Cancel), true, nil
}

// taken returns the rows of the winner, for which the caller's context counts from now on.
func taken(ctx context.Context, rows pgx.Rows, cancel context.CancelFunc) pgx.Rows {
	if session.InMemory(rows) {
		cancel()
		return rows
	}
	stop := context.AfterFunc(ctx, cancel)
	return &endedRows{rows, func() {
		stop()
		cancel()
	}}
}
