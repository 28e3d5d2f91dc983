package model

import "fmt"

// engine is the engine of sql/engine.sql, less what is taken out of it.
type engine struct {
	noMargin      bool // a setter goes by the window alone
	noSetterLock  bool // setters do not exclude each other
	noLastCheck   bool // a setter trusts the last value that it saw before it had the lock
	noSecondClock bool // a setter does not read the clock again
	noZoneLock    bool // between window and margin a value is drawn without the lock
	blindBlock    bool // next_ids draws its block without a look for each value
	drawFirst     bool // a call draws before it looks, and again after it has waited
	cached        bool // the sequence has a cache: a session draws several values at once

	tells bool // what it does; an exploration of millions of steps has no use for it
}

func (e *engine) say(format string, args ...any) string {
	if !e.tells {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// The sizes of everything, in values of the sequence. The clock is in the same unit.
const (
	sessions = 3
	behind   = 1                 // the window
	ahead    = 2                 // the window
	margin   = behind + sessions // one value a session
	block    = 4                 // of next_ids
	run      = 2                 // that a setter takes for next_ids
	cache    = 3                 // of a cached sequence
)

// point is where a session stands: what it does next.
type point uint8

const (
	idle point = iota // a call begins by its first step
	drawing
	lookingAtLast
	lookingAtClock
	waitingForLock
	readingClock
	checkingClock
	checkingLast
	drawingInZone
	setting
	drawingBlock
)

// session is one session of Postgres.
type session struct {
	at     point
	locked bool // it holds the lock
	drew   bool // before it looked
	bulk   bool // all its calls are of next_ids
	calls  int8 // that it may still make
	seen   int8 // the last value that it saw
	v      int8 // what the setter is about to set
	left   int8 // of its block, after a first value or run
}

// act does the session's next step and says what it was. It returns false if the session has to wait.
func (e *engine) act(w *world, i int) (what string, ok bool) {
	s := &w.s[i]
	switch s.at {
	case idle:
		if s.calls == 0 {
			return "", false
		}
		s.calls--
		s.at = lookingAtLast
		if e.drawFirst {
			s.at = drawing
		}
		what, ok = e.act(w, i)
		if s.bulk {
			return e.say("calls next_ids() and %s", what), ok
		}
		return e.say("calls next_id() and %s", what), ok
	case drawing:
		if e.drawFirst && !s.drew {
			w.last++
			s.drew, s.v, s.at = true, w.last, lookingAtLast // the value is not given before it has looked
			return e.say("draws %d", w.last), true
		}
		what = e.draw(w)
		e.drawn(s)
		return what, true
	case lookingAtLast:
		if s.drew {
			s.seen, s.at = s.v, lookingAtClock
			return e.act(w, i)
		}
		s.seen, s.at = w.last, lookingAtClock
		return e.say("reads the last value, %d", w.last), true
	case lookingAtClock:
		return e.look(w, s), true
	case waitingForLock:
		if !e.noSetterLock && !w.free(i) {
			return "", false
		}
		s.locked, s.at = true, readingClock
		return "takes the lock", true
	case readingClock:
		s.v, s.at = w.clock, checkingClock
		if e.noSecondClock {
			s.at = checkingLast
		}
		return e.say("reads the clock, %d, and takes that for its value", w.clock), true
	case checkingClock:
		if w.clock < s.v {
			return e.again(s, e.say("reads the clock again, %d: it has stepped back", w.clock)), true
		}
		s.at = checkingLast
		return e.say("reads the clock again, %d", w.clock), true
	case checkingLast:
		return e.check(w, s), true
	case drawingInZone:
		s.locked = false
		what = e.draw(w)
		e.drawn(s)
		return what + ", and releases the lock", true
	case setting:
		return e.set(w, s), true
	case drawingBlock:
		what = e.draw(w)
		if s.left--; s.left == 0 {
			s.end()
		}
		return what + " of its block", true
	}
	return "", false
}

// look decides by what the session saw of the last value and what the clock says now.
func (e *engine) look(w *world, s *session) string {
	distance := w.clock - s.seen
	what := e.say("reads the clock, %d", w.clock)
	switch limit := e.limit(); {
	case distance > limit || distance > behind && !e.noZoneLock:
		s.at = waitingForLock
		return what + ": the sequence is behind"
	case s.drew:
		w.give(s.v, s.v)
		e.drawn(s)
		return what + ": near or ahead, and returns what it drew"
	}
	s.at = drawing // ahead of the clock it has slept by then, for however long
	return what + ": near or ahead"
}

// limit is how far behind the clock the last value may be without a setter.
func (e *engine) limit() int8 {
	if e.noMargin {
		return behind
	}
	return margin
}

// draw is nextval.
func (e *engine) draw(w *world) string {
	n := int8(1)
	if e.cached {
		n = cache
	}
	w.give(w.last+1, w.last+n)
	w.last += n
	if n > 1 {
		return e.say("draws %d to %d", w.last-n+1, w.last)
	}
	return e.say("draws %d", w.last)
}

// drawn ends a call that has its value, or goes on to the block of next_ids.
func (e *engine) drawn(s *session) {
	switch {
	case s.bulk && s.left == 0:
		*s = session{at: lookingAtLast, calls: s.calls, bulk: true, left: block}
	case s.bulk && s.left > 1:
		*s = session{at: lookingAtLast, calls: s.calls, bulk: true, left: s.left - 1}
	default:
		s.end()
		return
	}
	if e.blindBlock {
		s.at = drawingBlock
	}
}

// check compares the last value with the setter's.
func (e *engine) check(w *world, s *session) string {
	what := e.say("reads the last value, %d", w.last)
	if e.noLastCheck {
		what = "goes by the last value that it saw"
	} else if w.last != s.seen {
		return e.again(s, what+": it has moved on")
	}
	s.at = setting
	if s.v-s.seen <= e.limit() {
		s.at = drawingInZone
		return what + ": not far behind"
	}
	return what
}

// set is setval.
func (e *engine) set(w *world, s *session) string {
	last := s.v
	if s.bulk && s.left == 0 {
		last += run - 1
	}
	w.last = last
	w.give(s.v, last)
	what := e.say("sets the sequence to %d, takes %d to %d, and releases the lock", last, s.v, last)
	s.locked = false
	e.drawn(s)
	return what
}

// again gives the lock back and has the session look again.
func (e *engine) again(s *session, what string) string {
	s.locked, s.drew, s.at = false, false, lookingAtLast
	return what + ", and looks again"
}

func (s *session) end() { *s = session{calls: s.calls, bulk: s.bulk} }
