package primary

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/serverrole"
	"github.com/kiloshard/kiloshard/router/internal/failure"
)

var (
	errStandby     = errors.New("it is a standby")
	errCluster     = errors.New("it belongs to another cluster")
	errSuperseded  = errors.New("another server was promoted after it")
	errTwoClusters = errors.New("it takes writes, and so does a server of another cluster: the host could be either")
)

// record stores the result of a probe and acts on it.
func (w *Watch) record(a *address, r report) {
	w.mu.Lock()
	defer w.unlock()
	defer w.notify()
	if r.renewed {
		a.renewed = r.ended
	}
	if r.state == unknown {
		a.last.asked = r.asked // the rest still holds
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
	if r.renewed && a == w.primary && r.role.TakesWrites() {
		w.cutFormer(a)
	}
}

// sameRole reports whether two roles are equal, apart from the server. So a restart does not change the role.
func sameRole(a, b serverrole.Role) bool {
	a.Server = b.Server
	return a == b
}

// Failed records why a connect to the primary failed.
func (w *Watch) Failed(err error) {
	if lacksCredentials(err) || isLocal(err) {
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

// twoClusters reports whether there are primaries of several clusters while the host's cluster is unknown. In that case none
// of them counts as the primary. The caller holds mu.
func (w *Watch) twoClusters() bool {
	if w.system != "" {
		return false
	}
	system := ""
	for _, a := range w.addresses {
		r := a.last.role
		if a.last.state != answered || r.Recovery || r.System == "" {
			continue
		}
		if system != "" && r.System != system {
			return true
		}
		system = r.System
	}
	return false
}

// unfit returns why a server with this role is not the primary; nil if it may be. The caller holds mu.
func (w *Watch) unfit(r serverrole.Role) error {
	switch {
	case r.Recovery:
		return errStandby
	case w.system != "" && r.System != "" && r.System != w.system:
		return errCluster
	case r.Timeline != 0 && r.Timeline < w.timeline:
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
	case best != nil && best != now && w.mayTakeOver(best):
		w.switchTo(best)
	case now == nil:
		w.cause = w.causes()
		w.cutLate()
	case now.last.state == answered && w.unfit(now.last.role) == nil:
		w.learn(now.last.role)
	case now.last.state != alive && now.last.state != unprobed:
		w.markDown(w.causes(), now.last.state != down)
	}
}

// betterThan reports whether a is a better primary than other: the one that was promoted last is better, else the one that
// takes writes, else the last primary. The caller holds mu.
func (w *Watch) betterThan(a, other *address) bool {
	mine, its := a.last.role, other.last.role
	if mine.Newer(its) != its.Newer(mine) {
		return mine.Newer(its)
	}
	return a == w.latest
}

// mayTakeOver reports whether an address may become the primary. An address that was promoted after the last primary may.
// Any other must wait until each of the other addresses was probed since, or had enough time to answer: one of them may have
// been promoted while this one was away. The caller holds mu.
func (w *Watch) mayTakeOver(a *address) bool {
	if w.timeline != 0 && a.last.role.Timeline > w.timeline {
		return true
	}
	if w.primary != nil {
		return false // it is no better than the present primary
	}
	since := a.last.since
	if time.Since(since) > w.FailAfter/attemptsUp {
		return true
	}
	for _, other := range w.addresses {
		if other != a && other.last.ended.Before(since) {
			return false
		}
	}
	return true
}

// learn stores the primary's timeline and cluster. The caller holds mu.
func (w *Watch) learn(r serverrole.Role) {
	w.timeline = max(w.timeline, r.Timeline)
	if w.system == "" {
		w.system = r.System
	}
}

// allRefuseLogin reports whether all addresses refuse the login: then waiting does not help. The caller holds mu.
func (w *Watch) allRefuseLogin() bool {
	for _, a := range w.addresses {
		if !failure.RefusesLogin(a.last.err) {
			return false
		}
	}
	return true
}

// causes returns why each address is not the primary. The caller holds mu.
func (w *Watch) causes() error {
	var all []error
	for _, a := range w.addresses {
		err := a.last.err
		switch a.last.state {
		case answered:
			if err = w.unfit(a.last.role); err == nil && w.twoClusters() {
				err = errTwoClusters
			}
		case unprobed:
			err = errors.New("not probed yet")
		}
		if err != nil && !errors.As(err, new(*pgconn.ConnectError)) { // that error names the address
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
