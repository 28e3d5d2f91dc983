// Package hedge runs a read on a second server when the first one does not answer in time. The first answer counts.
package hedge

import (
	"context"
	"errors"
	"time"
)

// loserLimit is how much longer the slower of two servers may take before its statement is canceled. A cancel costs the
// connection, and many stalls are over by then.
const loserLimit = 200 * time.Millisecond

var (
	// ErrClosing means that the servers are being closed.
	ErrClosing = errors.New("the servers are being closed")
	// ErrFailed means that no server answered.
	ErrFailed = errors.New("no server has answered")
)

// Race is one read that runs on one server or two. S is a server, A an answer.
type Race[S, A any] struct {
	Next   func() (S, error)                          // returns the next server to read from; one goroutine at a time calls it
	Read   func(ctx context.Context, at S) (A, error) // reads from a server
	GoesOn func(at S, err error) bool                 // reports whether to try the next server after an error
	Drop   func(A)                                    // closes an answer that came too late
	Go     func(fn func()) bool                       // runs fn in a goroutine; returns false if the servers are being closed

	Delay  time.Duration // how long to wait before the read also runs on a second server
	Spend  func() bool   // takes a second read from the budget; returns false if the budget is empty
	Refund func()        // undoes Spend
}

// Result is the result of a race.
type Result[S, A any] struct {
	First  S // the server that got the read first
	Answer A
	Cancel context.CancelFunc // cancels the context of Answer

	Second bool // a second server got the read because the first was late
	Won    bool // the second server answered first
}

// attempt is the read on one server.
type attempt[S, A any] struct {
	at     S
	cancel context.CancelFunc
	answer A
	err    error
	over   bool
}

// run is a race that is running.
type run[S, A any] struct {
	Race[S, A]
	ctx      context.Context
	attempts []*attempt[S, A]
	running  int
	closing  bool // Go has refused
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
				race.endLosers(loserLimit)
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
			race.endLosers(0)
			return result, ctx.Err()
		}
	}
}

// begin starts the read on the next server. Once the servers are being closed it asks for no other one: the read that found it out has had
// its turn there already.
func (r *run[S, A]) begin() error {
	if r.closing {
		return ErrClosing
	}
	at, err := r.Next()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.ctx)) // the loser may run for loserLimit after the caller returns
	a := &attempt[S, A]{at: at, cancel: cancel}
	started := r.Go(func() {
		a.answer, a.err = r.Read(ctx, at)
		r.ended <- a
	})
	if !started {
		cancel()
		r.closing = true
		return ErrClosing
	}
	r.attempts = append(r.attempts, a)
	r.running++
	return nil
}

// endLosers waits in the background for the attempts that still run, and drops their answers. It cancels them after limit.
func (r *run[S, A]) endLosers(limit time.Duration) {
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
	collect := func() {
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
	if !r.Go(collect) { // the servers are being closed
		end()
		collect()
	}
}
