package primary

import (
	"context"
	"fmt"
	"time"
)

// Admit waits until requests may go to the host. Its error is that of Config.DownError, unless ctx ends first, the watch is
// retired, or gone returns an error. gone reports that the request no longer goes to this host; it may be nil.
func (w *Watch) Admit(ctx context.Context, gone func() error) error {
	if w.passing.Load() {
		return nil
	}
	w.start()
	came := time.Now()
	var timer *time.Timer
	for {
		w.mu.Lock()
		up, closed, err, reported := w.up, w.closed, w.downError(), w.reported
		left := time.Until(w.since.Add(w.Wait))
		fail := w.several && w.allRefuseLogin()
		if a := w.latest; !w.several && !up {
			// A refused connection is reported at once, so that the host is probed again.
			left = time.Until(came.Add(downStep))
			if fail = a.last.state != down || a.last.asked.After(came.Add(-refusedFor)); !fail {
				a.probeNow()
			}
		}
		w.mu.Unlock()
		if closed != nil {
			return closed
		}
		if gone != nil {
			if why := gone(); why != nil {
				return why
			}
		}
		switch {
		case up:
			return nil
		case left <= 0 || fail:
			return err
		}
		if timer == nil {
			timer = time.NewTimer(left)
			defer timer.Stop()
		} else {
			timer.Reset(left)
		}
		select {
		case <-reported:
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Confirm waits until the primary's address was probed again, or is no longer the primary's. It waits little longer than
// the host may be silent (FailAfter). ctx ends the wait.
func (w *Watch) Confirm(ctx context.Context) { w.confirm(ctx, false) }

// confirm waits for a probe, on a new connection if renewed is true.
func (w *Watch) confirm(ctx context.Context, renewed bool) {
	ctx, cancel := context.WithTimeout(ctx, w.FailAfter+downInterval)
	defer cancel()
	began := time.Now()
	for {
		w.mu.Lock()
		a, reported := w.primary, w.reported
		done := a == nil || a.last.asked.After(began) || w.closed != nil
		if !done {
			a.renew = a.renew || renewed
			renewed = false
			a.probeNow()
		}
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-reported:
		case <-ctx.Done():
			return
		}
	}
}

// LookAgain probes all addresses at once, because another part of the program has seen that a standby was promoted. It does not wait.
func (w *Watch) LookAgain() {
	if !w.several { // the one address may lead to the new primary
		w.Refused()
		return
	}
	for _, a := range w.addresses {
		a.probeNow()
	}
}

// Refused probes the primary's address on a new connection, because a server refused a write (SQLSTATE 25006). The probe
// closes connections to a server that no longer has the address. Refused does not wait.
func (w *Watch) Refused() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.primary; a != nil && w.started && w.closed == nil && !w.Any && time.Since(a.renewed) >= downInterval {
		a.renew = true
		a.probeNow()
	}
}

// Demoted reports whether the server that refused a write (SQLSTATE 25006) is no longer the primary. In that case requests
// go to another server than at the time when turns came from [Watch.Turns]. Demoted probes the primary's address on a new
// connection. If the host has several addresses and none takes writes, it waits for one, until the primary has refused
// writes for Wait. ctx ends the wait.
func (w *Watch) Demoted(ctx context.Context, turns uint64) bool {
	if w.Any {
		return false
	}
	w.mu.Lock()
	renewed := w.primary != nil && time.Since(w.primary.renewed) >= downInterval
	w.mu.Unlock()
	w.confirm(ctx, renewed)
	for w.several {
		w.mu.Lock()
		readOnly, left := false, time.Duration(0)
		if now := w.primary; now != nil {
			readOnly, left = now.last.role.ReadOnly, time.Until(now.last.since.Add(w.Wait))
		}
		closed, reported := w.closed, w.reported
		w.mu.Unlock()
		if w.turns.Load() != turns || !readOnly || closed != nil || left <= 0 {
			break
		}
		select {
		case <-reported:
		case <-time.After(left):
		case <-ctx.Done():
			return false
		}
	}
	return w.turns.Load() != turns
}

// ReadOnly reports whether the host has several addresses, of which none is known to be a primary that takes writes.
func (w *Watch) ReadOnly() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.several && (w.primary == nil || w.primary.last.role.ReadOnly)
}
