package primary

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

var (
	errStandby     = errors.New("it is a standby")
	errCluster     = errors.New("it belongs to another cluster")
	errSuperseded  = errors.New("another server was promoted after it")
	errTwoClusters = errors.New("it takes writes, and so does a server of another cluster: the host could be either")
)

// record stores the result of a probe, and acts on it.
func (w *Watch) record(a *address, r report) {
	w.mu.Lock()
	defer w.unlock()
	defer w.notify()
	if r.renewed {
		a.renewed = r.ended
	}
	if r.state == unknown {
		a.last.asked = r.asked // the rest is as it was
		return
	}
	r.since = r.asked
	if before := a.last; before.state == answered && r.state == answered && sameRole(before.role, r.role) {
		r.since = before.since
	}
	a.last = r
	switch {
	case w.several:
		w.choose()
		w.logRival(a)
	case r.state == down || r.state == silent:
		w.markDown(r.err, r.state == silent)
	default:
		w.markUp()
	}
	if r.renewed && a == w.primary && r.role.takesWrites() {
		w.cutFormer(a)
	}
}

// sameRole reports whether two roles are equal, even if they are of two servers or the server was restarted between them.
func sameRole(a, b role) bool {
	a.server = b.server
	return a == b
}

// Failed records why a connection to the primary could not be made.
func (w *Watch) Failed(err error) {
	if notAsked(err) || ofThisMachine(err) {
		return
	}
	w.mu.Lock()
	defer w.unlock()
	if a := w.primary; a != nil && w.up {
		if refusedAt(err) && !w.several {
			a.last = report{state: down, err: err, asked: time.Now(), ended: time.Now()}
			w.markDown(err, false)
			w.notify()
		}
		a.probeNow()
	}
}

// Connected records that a connection to the primary was made.
func (w *Watch) Connected() {
	if w.halfOpen.Load() {
		w.halfOpen.Store(false)
	}
}

// twoClusters reports whether servers of several clusters take writes while the host's cluster is not known yet. None of them
// counts as the primary then. The caller holds mu.
func (w *Watch) twoClusters() bool {
	if w.system != "" {
		return false
	}
	system := ""
	for _, a := range w.addresses {
		r := a.last.role
		if a.last.state != answered || r.recovery || r.system == "" {
			continue
		}
		if system != "" && r.system != system {
			return true
		}
		system = r.system
	}
	return false
}

// unfit returns why a server is not the primary, nil if it may be. The caller holds mu.
func (w *Watch) unfit(r role) error {
	switch {
	case r.recovery:
		return errStandby
	case w.system != "" && r.system != "" && r.system != w.system:
		return errCluster
	case r.timeline != 0 && r.timeline < w.timeline:
		return errSuperseded
	}
	return nil
}

// choose finds the primary among the addresses by their reports. The caller holds mu.
func (w *Watch) choose() {
	var best *address
	twoClusters := w.twoClusters()
	for _, a := range w.addresses {
		if !twoClusters && a.last.state == answered && w.unfit(a.last.role) == nil && (best == nil || w.betterThan(a, best)) {
			best = a
		}
	}
	now := w.primary
	switch {
	case best != nil && best != now && w.sure(best):
		w.switchTo(best)
	case now == nil:
		w.cause = w.causes()
		w.cutLate()
	case now.last.state == answered && w.unfit(now.last.role) == nil:
		w.learn(now.last.role)
	case now.last.state != alive && now.last.state != unasked:
		w.markDown(w.causes(), now.last.state != down)
	}
}

// betterThan reports whether an address is a better primary than another one: the one that was promoted last, else one
// that takes writes, else the one that was the primary before. The caller holds mu.
func (w *Watch) betterThan(a, other *address) bool {
	mine, its := a.last.role, other.last.role
	switch {
	case mine.timeline != its.timeline:
		return mine.timeline > its.timeline
	case mine.readOnly != its.readOnly:
		return its.readOnly
	}
	return a == w.latest
}

// sure reports whether an address may become the primary. One that was promoted after the last primary may. Any other must
// wait until each of the others was probed since, or had the time to answer: one of them may have been promoted while this
// one was away. The caller holds mu.
func (w *Watch) sure(a *address) bool {
	if w.timeline != 0 && a.last.role.timeline > w.timeline {
		return true
	}
	if w.primary != nil {
		return false // as good as the present one
	}
	since := a.last.since
	if time.Since(since) > w.FailAfter/questions {
		return true
	}
	for _, other := range w.addresses {
		if other != a && other.last.ended.Before(since) {
			return false
		}
	}
	return true
}

// learn stores what the primary says about itself. The caller holds mu.
func (w *Watch) learn(r role) {
	w.timeline = max(w.timeline, r.timeline)
	if w.system == "" {
		w.system = r.system
	}
}

// allRefuse reports whether all addresses refuse the login, so that waiting does not help. The caller holds mu.
func (w *Watch) allRefuse() bool {
	for _, a := range w.addresses {
		if !failure.RefusesLogin(a.last.err) {
			return false
		}
	}
	return true
}

// causes returns for each address why it is not the primary. The caller holds mu.
func (w *Watch) causes() error {
	var all []error
	for _, a := range w.addresses {
		err := a.last.err
		switch a.last.state {
		case answered:
			if err = w.unfit(a.last.role); err == nil && w.twoClusters() {
				err = errTwoClusters
			}
		case unasked:
			err = errors.New("not probed yet")
		}
		if err != nil && !errors.As(err, new(*pgconn.ConnectError)) { // which names it itself
			err = fmt.Errorf("%s: %w", a, err)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	return causes(all)
}

// causes are errors in one line of text.
type causes []error

func (c causes) Error() string {
	var texts []string
	for _, err := range c {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (c causes) Unwrap() []error { return c }
