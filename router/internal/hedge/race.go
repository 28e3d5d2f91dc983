// Package hedge runs a read on a second server when the first one does not answer in time. The first answer counts.
package hedge

import (
	"context"
	"errors"
	"time"
)

// loserLimit is how much longer the slower server of two may take before its statement is cancelled. That costs the
// connection, and many a stall is over by then.
const loserLimit = 200 * time.Millisecond

var (
	// ErrClosing says that the servers are being closed.
	ErrClosing = errors.New("the servers are being closed")
	// ErrFailed says that no server has answered.
	ErrFailed = errors.New("no server has answered")
)

// Race is one read, of servers S with answers A.
type Race[S, A any] struct {
	Next   func() (S, error)                          // returns the server to read from next; called by one goroutine at a time
	Read   func(ctx context.Context, at S) (A, error) // reads there
	GoesOn func(at S, err error) bool                 // whether the next server may make up for an error
	Drop   func(A)                                    // closes an answer that came too late
	Go     func(fn func()) bool                       // runs fn in a goroutine; false if the servers are being closed

	Delay  time.Duration // before a second server is asked
	Spend  func() bool   // whether a second server may be asked
	Refund func()        // it was not asked
}

// Result is what came of a race.
type Result[S, A any] struct {
	First  S // the server that was asked first
	Answer A
	Cancel context.CancelFunc // ends the context that the answer was read with

	Second bool // a second server was asked in time
	Won    bool // and answered first
}

// attempt is the read on one server.
type attempt[S, A any] struct {
	at     S
	cancel context.CancelFunc
	answer A
	err    error
	over   bool
}

// run is a race that goes on.
type run[S, A any] struct {
	Race[S, A]
	ctx      context.Context
	attempts []*attempt[S, A]
	running  int
	ended    chan *attempt[S, A]
}

// Run runs the race. The error is that of ctx, of the first Next, [ErrClosing] or [ErrFailed].
func (r Race[S, A]) Run(ctx context.Context) (Result[S, A], error) {
	race := &run[S, A]{Race: r, ctx: ctx, ended: make(chan *attempt[S, A])}
	var result Result[S, A]
	if err := race.begin(); err != nil {
		return result, err
	}
	result.First = race.attempts[0].at
	timer := time.NewTimer(r.Delay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			if !r.Spend() {
				continue
			}
			if race.begin() != nil {
				r.Refund()
				continue
			}
			result.Second = true
		case a := <-race.ended:
			a.over = true
			race.running--
			if a.err == nil {
				result.Answer, result.Cancel = a.answer, a.cancel
				result.Won = a != race.attempts[0] && !race.attempts[0].over
				race.leave(loserLimit)
				return result, nil
			}
			a.cancel()
			goesOn := r.GoesOn(a.at, a.err)
			if race.running > 0 {
				continue
			}
			if !goesOn {
				return result, ErrFailed
			}
			if err := race.begin(); errors.Is(err, ErrClosing) {
				return result, err
			} else if err != nil {
				return result, ErrFailed
			}
		case <-ctx.Done():
			race.leave(0)
			return result, ctx.Err()
		}
	}
}

// begin asks the next server.
func (r *run[S, A]) begin() error {
	at, err := r.Next()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.ctx)) // the loser's may go on a little
	a := &attempt[S, A]{at: at, cancel: cancel}
	begun := r.Go(func() {
		a.answer, a.err = r.Read(ctx, at)
		r.ended <- a
	})
	if !begun {
		cancel()
		return ErrClosing
	}
	r.attempts = append(r.attempts, a)
	r.running++
	return nil
}

// leave cancels those that are still running after a while, and closes what they answer.
func (r *run[S, A]) leave(limit time.Duration) {
	if r.running == 0 {
		return
	}
	end := func() {
		for _, a := range r.attempts {
			if !a.over {
				a.cancel()
			}
		}
	}
	if limit == 0 {
		end()
	}
	see := func() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for r.running > 0 {
			select {
			case a := <-r.ended:
				r.running--
				if a.err == nil {
					r.Drop(a.answer)
				}
				a.cancel()
			case <-timer.C:
				end()
			}
		}
	}
	if !r.Go(see) { // everything is being closed
		end()
		see()
	}
}
