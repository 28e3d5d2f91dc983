package primary

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// prober probes one address. It has its own connection, so that it does not depend on what callers do.
type prober struct {
	*Watch
	at   *address
	conn *probeConn // kept from one probe to the next; nil if there is none

	asking atomic.Int64 // attempts that have credentials and no answer yet
	dialed atomic.Int64 // connections that were accepted
}

// run probes the address when it is woken, when a new connection is requested, while the host is down, while requests wait
// for a silent primary, and, if the host has several addresses, at intervals.
func (p *prober) run() {
	defer p.closeKept()
	first := time.Duration(0)
	if !p.several {
		first = p.interval()
	}
	timer := time.NewTimer(first)
	defer timer.Stop()
	var received uint64
	var probed time.Time
	for {
		woken := false
		select {
		case <-p.ctx.Done():
			return
		case <-p.at.wake:
			woken = true
		case <-timer.C:
		}
		p.mu.Lock()
		up, primary, last, renew := p.up, p.primary == p.at, p.at.last.state, p.at.renew
		p.at.renew = false
		p.mu.Unlock()
		if renew {
			p.closeKept()
		}
		before := received
		received = p.at.received()
		waiting := primary && received == before && p.Busy()
		step, steps, every := p.FailAfter/attemptsUp, attemptsUp, standbyInterval
		switch {
		case !up:
			step = min(step, downStep)
			steps = int((p.FailAfter + step - 1) / step)
		case !primary: // no request depends on it
			step, steps = p.FailAfter, 1
			if last == silent {
				every = silentInterval
			}
		}
		if woken || renew || !up || waiting || p.several && time.Since(probed) >= every {
			if wait := time.Until(probed.Add(minInterval)); wait > 0 && !sleep(p.ctx, wait) {
				return
			}
			r := p.probe(p.ctx, step, steps)
			if p.ctx.Err() != nil {
				return
			}
			r.renewed = renew
			probed = time.Now()
			p.record(p.at, r)
			received = p.at.received()
		} else if !p.several {
			p.closeKept()
		}
		timer.Reset(p.interval())
	}
}

// interval returns the time until run checks again whether to probe.
func (w *Watch) interval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.up {
		return downInterval
	}
	interval := w.FailAfter / (attemptsUp + 1)
	if w.several {
		interval = min(interval, standbyInterval)
	}
	return interval
}

// sleep waits, and returns false if ctx ends first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// trial is one attempt of a probe.
type trial struct {
	conn *probeConn
	report
	kept bool
}

// probe asks the address for its role, first on the kept connection. After each step without an answer it also tries a new
// connection, for the given number of steps. The address is silent only if no connection, including callers' connections,
// has received data; a pooler that accepts connections is not. A step starts when the step before ends, so a pause of this
// process counts as one step at most.
func (p *prober) probe(ctx context.Context, step time.Duration, steps int) (r report) {
	asked, received, dialed := time.Now(), p.at.received(), p.dialed.Load()
	ctx, cancel := context.WithCancel(ctx)
	trials := make(chan trial, 3*steps+3)
	var running sync.WaitGroup
	attempts, left := 0, 0
	begin := func(conn *probeConn) {
		attempt := attempts
		attempts++
		left++
		running.Go(func() {
			next, r := p.try(ctx, conn, attempt)
			trials <- trial{next, r, conn != nil}
		})
	}
	begin(p.conn)
	p.conn = nil
	timer := time.NewTimer(step)
	defer timer.Stop()
	broke := 0
	var last report
	for r.state == unprobed && ctx.Err() == nil {
		select {
		case t := <-trials:
			left--
			last = t.report
			switch {
			case t.kept && t.state != answered: // the server may have ended only this connection
				begin(nil)
			case broke < attemptsUp && broken(t.report):
				broke++
				begin(nil)
			case t.state == unknown && left > 0: // another attempt may know
			case t.state != silent:
				r, p.conn = t.report, t.conn
			}
		case <-timer.C:
			if p.asking.Load() == 0 { // the address is not silent: nothing was sent to it
				if left == 0 { // for example, because the name lookup failed
					r = report{state: unknown, err: last.err}
				}
				timer.Reset(step)
				continue
			}
			if steps--; steps > 0 {
				begin(nil)
				timer.Reset(step)
				continue
			}
			r = report{state: silent, err: errSilent}
			if p.at.received() != received || p.Pooled() && p.dialed.Load() != dialed {
				r.state = alive
			}
		case <-ctx.Done():
		}
	}
	cancel()
	running.Wait()
	close(trials)
	for t := range trials {
		t.conn.close()
	}
	r.asked, r.ended = asked, time.Now()
	return r
}

// closeKept closes the kept connection.
func (p *prober) closeKept() {
	p.conn.close()
	p.conn = nil
}
