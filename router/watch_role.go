package router

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	errStandby = errors.New("it is a standby")
	errCluster = errors.New("it is another cluster's")
	errOutrun  = errors.New("another server was promoted after it")
	errTorn    = errors.New("it takes writes, and so does a server of another cluster: which one is meant?")
)

// hear takes note of what a probe has found.
func (w *watch) hear(a *address, r report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.since = r.asked
	if before := a.last; before.news == newsRole && r.news == newsRole && before.role == r.role {
		r.since = before.since
	}
	a.last = r
	switch {
	case !w.several && (r.news == newsGone || r.news == newsSilent):
		w.fall(r.err, r.news == newsSilent)
	case !w.several:
		w.rise()
	default:
		w.choose()
		w.sayRival(a)
	}
	w.tell()
}

// sayRival tells the log of an address that takes writes though it is not the primary, once until it takes none. The
// caller holds mu.
func (w *watch) sayRival(a *address) {
	if a.last.news != newsRole {
		a.rival = a.rival && a.last.news != newsGone // one that does not answer may go on
		return
	}
	r, was, why := a.last.role, a.rival, w.unfit(a.last.role)
	if w.torn() {
		why = errTorn
	}
	a.rival = !r.recovery && !r.readOnly && (why != nil || w.primary != nil && a != w.primary)
	if !a.rival || was {
		return
	}
	if why == nil {
		why = errors.New("it is on the same timeline as the primary: it is the same server, or what they have differs")
	}
	log := w.log.With(slog.String("host", w.host.Name), slog.String("address", a.String()))
	if w.primary != nil {
		log = log.With(slog.String("primary", w.primary.String()))
	}
	log.Warn("more than one primary", slog.Any("error", why))
}

// torn tells whether servers of several clusters take writes, and it is not known yet which cluster is the host's: then
// none of them is taken for the primary. The caller holds mu.
func (w *watch) torn() bool {
	if w.system != "" {
		return false
	}
	system := ""
	for _, a := range w.addresses {
		r := a.last.role
		if a.last.news != newsRole || r.recovery || r.system == "" {
			continue
		}
		if system != "" && r.system != system {
			return true
		}
		system = r.system
	}
	return false
}

// noticed takes note of why a connection to the primary was not to be had.
func (w *watch) noticed(err error) {
	if errors.As(err, new(notAskedError)) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.primary; a != nil && w.up {
		if refusedAt(err) && !w.several {
			a.last = report{news: newsGone, err: err, asked: time.Now(), ended: time.Now()}
			w.fall(err, false)
			w.tell()
		}
		a.wake()
	}
}

// connected takes note that a connection to the primary was had.
func (w *watch) connected() {
	if w.half.Load() {
		w.half.Store(false)
	}
}

// unfit returns why a server must not be written to. The caller holds mu.
func (w *watch) unfit(r role) error {
	switch {
	case r.recovery:
		return errStandby
	case w.system != "" && r.system != "" && r.system != w.system:
		return errCluster
	case r.timeline != 0 && r.timeline < w.timeline:
		return errOutrun
	}
	return nil
}

// choose finds the primary among the addresses by what they have said. The caller holds mu.
func (w *watch) choose() {
	var best *address
	torn := w.torn()
	for _, a := range w.addresses {
		if !torn && a.last.news == newsRole && w.unfit(a.last.role) == nil && (best == nil || w.betterThan(a, best)) {
			best = a
		}
	}
	now := w.primary
	switch {
	case best != nil && best != now && w.sure(best):
		w.turn(best)
	case now == nil:
		w.cause = w.causes()
		w.cutLate()
	case now.last.news == newsRole && w.unfit(now.last.role) == nil:
		w.learn(now.last.role)
	case now.last.news != newsAlive && now.last.news != noNews:
		w.fall(w.causes(), now.last.news != newsGone)
	}
}

// betterThan tells whether an address is a better primary than another one: the one that was promoted last, else one that
// takes writes, else the one that was the primary before. The caller holds mu.
func (w *watch) betterThan(a, other *address) bool {
	mine, its := a.last.role, other.last.role
	switch {
	case mine.timeline != its.timeline:
		return mine.timeline > its.timeline
	case mine.readOnly != its.readOnly:
		return its.readOnly
	}
	return a == w.latest
}

// sure tells whether an address may be taken for the primary. One that was promoted after the last primary may. Another
// one may only when each of the others has been asked since, or had the time to answer: one of them may have been promoted
// while this one was away. The caller holds mu.
func (w *watch) sure(a *address) bool {
	if w.timeline != 0 && a.last.role.timeline > w.timeline {
		return true
	}
	if w.primary != nil {
		return false // as good as the present one
	}
	since := a.last.since
	if time.Since(since) > w.failAfter/questions {
		return true
	}
	for _, other := range w.addresses {
		if other != a && other.last.ended.Before(since) {
			return false
		}
	}
	return true
}

// learn takes over what the primary says of itself. The caller holds mu.
func (w *watch) learn(r role) {
	w.timeline = max(w.timeline, r.timeline)
	if w.system == "" {
		w.system = r.system
	}
}

// turn has calls go to an address from now on, and closes all connections to the others. The caller holds mu.
func (w *watch) turn(to *address) {
	first := w.latest == nil
	w.learn(to.last.role)
	for _, a := range w.addresses {
		if a != to {
			a.close(fmt.Errorf("the primary is now at %s", to))
		}
	}
	to.open()
	if !first && w.latest != to {
		w.changes++
		w.turns.Add(1)
		w.log.Warn("primary changed", slog.String("host", w.host.Name), slog.String("from", w.latest.String()),
			slog.String("to", to.String()), slog.Any("timeline", w.timeline))
	}
	w.primary, w.latest = to, to
	w.host.lines.renew()
	w.host.lines.pool.Reset()
	w.rise()
}

// rise lets calls through again. The caller holds mu.
func (w *watch) rise() {
	if w.up {
		return
	}
	w.up = true
	w.primary = w.latest
	w.primary.open()
	if w.risen {
		w.half.Store(true)
		w.log.Info("host up", slog.String("host", w.host.Name), slog.String("address", w.primary.String()),
			slog.Duration("down", time.Since(w.since).Round(time.Millisecond)))
	}
	w.cause, w.risen = nil, true
	w.host.lines.rise()
	w.passing.Store(true)
}

// fall stops all calls that wait, and closes all connections if cut is true. If it is not, the server, which takes no new
// connections, may still have those that it has: they are closed when nothing has come from it for as long as it may be
// silent. The caller holds mu.
func (w *watch) fall(cause error, cut bool) {
	w.cause = cause
	if !w.up {
		w.cutLate()
		return
	}
	w.up, w.since = false, time.Now()
	w.passing.Store(false)
	w.half.Store(false)
	w.turns.Add(1)
	down := w.downError()
	w.host.lines.fall(down)
	if w.latest.bar(down); cut {
		w.latest.close(down)
	}
	w.left, w.leftAt = w.latest.callers.Load(), w.since
	w.host.lines.pool.Reset()
	if w.several {
		w.primary = nil
	}
	for _, a := range w.addresses {
		a.wake()
	}
	w.log.Warn("host down", slog.String("host", w.host.Name), slog.String("address", w.latest.String()), slog.Any("error", cause))
}

// cutLate closes the connections to what was the primary, once nothing comes by them any more. The caller holds mu.
func (w *watch) cutLate() {
	if w.latest == nil {
		return
	}
	if heard := w.latest.callers.Load(); heard != w.left {
		w.left, w.leftAt = heard, time.Now()
	} else if time.Since(w.leftAt) > w.failAfter {
		w.latest.close(w.downError())
	}
}

// hopeless tells whether all addresses let nobody in, so that waiting does not help. The caller holds mu.
func (w *watch) hopeless() bool {
	for _, a := range w.addresses {
		if !refusesLogin(a.last.err) {
			return false
		}
	}
	return true
}

// causes says of each address why it is not the primary. The caller holds mu.
func (w *watch) causes() error {
	var all []error
	for _, a := range w.addresses {
		err := a.last.err
		switch {
		case a.last.news == newsRole:
			if err = w.unfit(a.last.role); err == nil && w.torn() {
				err = errTorn
			}
		case a.last.news == noNews:
			err = errors.New("not asked yet")
		}
		if err != nil && !errors.As(err, new(*pgconn.ConnectError)) { // which says so itself
			err = fmt.Errorf("%s: %w", a, err)
		}
		if err != nil {
			all = append(all, err)
		}
	}
	return causes(all)
}

// causes are errors on one line.
type causes []error

func (c causes) Error() string {
	var texts []string
	for _, err := range c {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func (c causes) Unwrap() []error { return c }

// refusesLogin tells whether a server says that it will not let this user in, or that there is no such database.
func refusesLogin(err error) bool {
	code := sqlState(err)
	return strings.HasPrefix(code, "28") || code == "3D000" || code == "42501"
}
