package router

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// hedgeShare of all reads that may be sent twice are, at most, and hedgeBurst at once.
	hedgeShare = 0.1
	hedgeBurst = 16
	hedgeCost  = 1000 // tokens
	// hedgeFloor is the shortest time that HedgeP95 comes to.
	hedgeFloor = time.Millisecond
	// loserLimit is how much longer the slower server of two may take before its statement is cancelled. That costs the
	// connection, and many a stall is over by then.
	loserLimit = 200 * time.Millisecond
)

var errTooLate = errors.New("the replicas are being closed")

// hedgeBudget is what may be spent on sending reads twice.
type hedgeBudget struct{ tokens atomic.Int64 }

// earn is for each read that may be sent twice.
func (b *hedgeBudget) earn() {
	const earned = hedgeShare * hedgeCost
	if b.tokens.Load() < hedgeBurst*hedgeCost {
		b.tokens.Add(int64(earned))
	}
}

// spend tells whether one may be sent twice now.
func (b *hedgeBudget) spend() bool {
	if b.tokens.Add(-hedgeCost) >= 0 {
		return true
	}
	b.tokens.Add(hedgeCost)
	return false
}

// hedgeDelay returns after how long a statement is to be sent a second time, 0 for never.
func (h *host) hedgeDelay(t *text, want Reads) time.Duration {
	switch {
	case want.Hedge == 0 || h.replicas == nil || !t.reads:
		return 0
	case want.Hedge > 0:
		return want.Hedge
	}
	if p95 := time.Duration(t.p95.Load()); p95 > 0 {
		return max(p95, hedgeFloor)
	}
	return 0
}

// answeredIn takes note of how long a reader waited for an answer. Over time one in twenty takes longer than p95.
func (t *text) answeredIn(took time.Duration) {
	before := t.p95.Load()
	p95 := before
	switch {
	case p95 == 0:
		p95 = int64(took)
	case int64(took) > p95:
		p95 += p95 * 95 / 1600
	default:
		p95 -= p95 * 5 / 1600
	}
	t.p95.CompareAndSwap(before, max(p95, int64(10*time.Microsecond)))
}

// heat is one of the servers that a statement was sent to.
type heat struct {
	at     station
	cancel context.CancelFunc
	rows   pgx.Rows
	err    error
	over   bool
}

// hedge runs a statement on one server, and if that has not answered after a while on another one too. What either
// answers first is returned. A server that fails is made up for by the next one, as in Query.
func (r Reader) hedge(ctx context.Context, on *host, delay time.Duration, text *text, sql string, args []any) (pgx.Rows, error) {
	rs := on.replicas
	rs.budget.earn()
	w := r.walk()
	answers := make(chan *heat, len(rs.all)+1)
	var heats []*heat
	began := time.Now()
	run := func() error {
		at, err := w.next(ctx)
		if err != nil {
			return err
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the loser's may go on a little
		h := &heat{at: at, cancel: cancel}
		begun := rs.begin(func() {
			h.rows, h.err = at.query(own, sql, args)
			answers <- h
		})
		if !begun {
			cancel()
			return errTooLate
		}
		heats = append(heats, h)
		return nil
	}
	switch err := run(); {
	case errors.Is(err, errTooLate):
		return r.inTurn(ctx, text, sql, args) //nolint:sqlclosecheck // they are the caller's; it goes to the shard's new home
	case err != nil:
		return failedRows{err}, err
	}
	quick := r.reads
	quick.Wait = -1 // what has been sent may be answered sooner
	w.reads = &quick
	timer := time.NewTimer(delay)
	defer timer.Stop()
	for running := 1; ; {
		select {
		case <-timer.C:
			switch {
			case !rs.budget.spend():
			case run() == nil:
				running++
				rs.hedged.Add(1)
			default:
				rs.budget.tokens.Add(hedgeCost)
			}
		case h := <-answers:
			h.over = true
			running--
			if h.err != nil {
				h.cancel()
			}
			if h.err == nil {
				text.answeredIn(time.Since(began))
				if h != heats[0] && !heats[0].over {
					rs.won.Add(1)
				}
				rs.leave(heats, answers, running, loserLimit)
				return h.taken(ctx), nil
			}
			if w.goesOn(ctx, h.at, h.err, true) || running > 0 {
				if running > 0 {
					continue
				}
				switch err := run(); {
				case err == nil:
					running++
					continue
				case errors.Is(err, errTooLate):
					return r.inTurn(ctx, text, sql, args) //nolint:sqlclosecheck // see above
				}
			}
			return failedRows{w.last}, w.last
		case <-ctx.Done():
			rs.leave(heats, answers, running, 0)
			err := heats[0].at.home.failed(ctx.Err())
			return failedRows{err}, err
		}
	}
}

// taken returns the rows of the winner, for which the caller's context counts from now on.
func (h *heat) taken(ctx context.Context) pgx.Rows {
	if all, whole := h.rows.(*answerRows); whole {
		all.ctx = ctx
		h.cancel()
		return all
	}
	stop := context.AfterFunc(ctx, h.cancel)
	return &endedRows{h.rows, func() {
		stop()
		h.cancel()
	}}
}

// leave sees off those that are still running.
func (rs *replicas) leave(heats []*heat, answers <-chan *heat, running int, limit time.Duration) {
	if running == 0 {
		return
	}
	end := func() {
		for _, h := range heats {
			if !h.over {
				h.cancel()
			}
		}
	}
	if limit == 0 {
		end()
	}
	see := func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for late := running; late > 0; {
			select {
			case h := <-answers:
				late--
				if h.err == nil {
					h.rows.Close()
				}
				h.cancel()
			case <-timer.C:
				end()
			}
		}
	}
	if !rs.begin(see) { // everything is being closed
		end()
		see()
	}
}

// keepArgs returns arguments that stay as they are when the caller goes on and uses its own again, while a server that
// lost is still being asked. It returns false for those of which it cannot tell.
func keepArgs(args []any) ([]any, bool) {
	kept := slices.Clone(args)
	for i, arg := range kept {
		var ok bool
		if kept[i], ok = keepArg(arg); !ok {
			return nil, false
		}
	}
	return kept, true
}

func keepArg(arg any) (any, bool) {
	if arg == nil {
		return nil, true
	}
	v := reflect.ValueOf(arg)
	switch {
	case plain(v.Type()):
		return arg, true
	case v.Kind() == reflect.Slice && plain(v.Type().Elem()):
		if v.IsNil() {
			return arg, true
		}
		kept := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(kept, v)
		return kept.Interface(), true
	}
	return nil, false
}

// plain tells whether values of a type hold nothing that may change.
func plain(t reflect.Type) bool {
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Complex128 || k == reflect.String || t == reflect.TypeFor[time.Time]():
		return true
	case k == reflect.Array:
		return plain(t.Elem())
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
