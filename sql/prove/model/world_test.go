package model

import (
	"math/bits"
	"slices"
)

// world is all there is: a clock, a sequence, and sessions.
type world struct {
	clock, last int8
	durable     int8   // what a crash leaves of the sequence at least
	given       uint64 // the values that were given, a bit each
	twice       bool   // whether one was given that had been given before
	s           [sessions]session

	// What the rest of the world may still do.
	ticks, leaps, steps, crashes, cancels int8
}

// rules say what the rest of the world may do at all.
type rules struct {
	stepInGap   bool // the clock steps back between a setter's second reading of it and its setval: open, a
	crashOnLead bool // the server loses WAL while the sequence leads the clock: open, b
	crashBack   bool // the server loses WAL and its clock is back before the crash: open, c
}

// give notes values as given.
func (w *world) give(from, to int8) {
	for v := from; v <= to; v++ {
		bit := uint64(1) << v
		w.twice = w.twice || w.given&bit != 0
		w.given |= bit
	}
}

// top is the highest value that was given.
func (w *world) top() int8 { return int8(63 - bits.LeadingZeros64(w.given|1)) }

// free tells whether session i could take the lock.
func (w *world) free(i int) bool {
	for k := range w.s {
		if k != i && w.s[k].locked {
			return false
		}
	}
	return true
}

// key is the world in few bits, with its sessions in order, since they are all alike.
type key [3]uint64

func (w *world) key() key {
	var s [sessions]uint64
	for i := range w.s {
		s[i] = w.s[i].pack()
	}
	slices.Sort(s[:])
	var rest packer
	for _, n := range []int8{w.clock, w.last, w.durable} {
		rest.put(uint64(n), 6)
	}
	for _, n := range []int8{w.ticks, w.leaps, w.steps, w.crashes, w.cancels} {
		rest.put(uint64(n), 3)
	}
	rest.put(s[2], 30)
	return key{w.given, s[0]<<32 | s[1], uint64(rest)}
}

func (k key) world() world {
	rest := packer(k[2])
	w := world{given: k[0]}
	w.s[2].unpack(rest.take(30))
	for _, n := range []*int8{&w.cancels, &w.crashes, &w.steps, &w.leaps, &w.ticks} {
		*n = int8(rest.take(3))
	}
	for _, n := range []*int8{&w.durable, &w.last, &w.clock} {
		*n = int8(rest.take(6))
	}
	w.s[0].unpack(k[1] >> 32)
	w.s[1].unpack(k[1] & 0xFFFFFFFF)
	return w
}

// packer is a stack of bits.
type packer uint64

func (p *packer) put(n uint64, width int) { *p = *p<<width | packer(n) }

func (p *packer) take(width int) uint64 {
	n := uint64(*p) & (1<<width - 1)
	*p >>= width
	return n
}

func (s *session) pack() uint64 {
	p := packer(s.at)
	p.put(bit(s.drew)<<2|bit(s.locked)<<1|bit(s.bulk), 3)
	p.put(uint64(s.calls), 3)
	p.put(uint64(s.seen), 6)
	p.put(uint64(s.v), 6)
	p.put(uint64(s.left), 3)
	return uint64(p)
}

func (s *session) unpack(n uint64) {
	p := packer(n)
	s.left = int8(p.take(3))
	s.v = int8(p.take(6))
	s.seen = int8(p.take(6))
	s.calls = int8(p.take(3))
	kinds := p.take(3)
	s.drew, s.locked, s.bulk = kinds&4 != 0, kinds&2 != 0, kinds&1 != 0
	s.at = point(p.take(4))
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// leap is how far a clock leaps, and may step back.
const leap = 3 * margin

// farthest is how high the clock and values may come.
const farthest = 50

// next calls to with every world that can come of this one, and with what has happened.
func (w *world) next(e *engine, r rules, to func(next world, what string)) {
	for i := range w.s {
		w.nextOf(e, i, to)
	}
	for _, by := range []int8{1, margin + 1} {
		if w.ticks > 0 && w.clock+by < farthest {
			n := *w
			n.ticks--
			n.clock += by
			to(n, e.say("the clock goes on to %d", n.clock))
		}
	}
	if w.leaps > 0 {
		n := *w
		n.leaps--
		n.clock += leap
		to(n, e.say("the clock leaps ahead to %d", n.clock))
	}
	w.stepsBack(e, r, to)
	w.crash(e, r, to)
}

// nextOf is what a session can do.
func (w *world) nextOf(e *engine, i int, to func(next world, what string)) {
	name := string(rune('A' + i))
	s := &w.s[i]
	n := *w
	if what, ok := e.act(&n, i); ok {
		to(n, e.say("%s %s", name, what))
	}
	if w.cancels > 0 && s.at != idle {
		n := *w
		n.cancels--
		n.s[i].end()
		to(n, e.say("%s is canceled", name))
	}
}

// stepsBack is the clock stepping back by a little or by much.
func (w *world) stepsBack(e *engine, r rules, to func(next world, what string)) {
	for i := range w.s {
		if at := w.s[i].at; !r.stepInGap && (at == setting || at == checkingLast && !e.noSecondClock) {
			return // it stands within one expression
		}
	}
	for _, by := range []int8{1, margin, leap} {
		if w.steps > 0 && w.clock > by {
			n := *w
			n.steps--
			n.clock -= by
			if top := w.top(); w.last < top && n.clock <= top+margin && !r.crashBack {
				continue // to before the crash
			}
			to(n, e.say("the clock steps back to %d", n.clock))
		}
	}
}

// crash ends all sessions and loses values of the sequence. The server is back when the clock is past what was given,
// unless the sequence led it.
func (w *world) crash(e *engine, r rules, to func(next world, what string)) {
	load := int8(ahead + sessions) // how far ahead load may bring the sequence
	for i := range w.s {
		if w.s[i].bulk {
			load += block
		}
	}
	leads := w.top() > w.clock+load
	if w.crashes > 0 && w.durable != w.last {
		n := *w
		n.durable = w.last
		to(n, e.say("the WAL up to %d is on the disk, and with the standby", w.last))
	}
	if w.crashes == 0 || leads && !r.crashOnLead {
		return
	}
	n := *w
	n.crashes--
	for i := range n.s {
		n.s[i] = session{calls: w.s[i].calls, bulk: w.s[i].bulk}
	}
	n.last = n.durable
	if !r.crashBack {
		n.clock += load + margin + 1
	}
	if n.clock < farthest {
		to(n, e.say("the server crashes; when it is back, the clock is at %d and the last value is %d", n.clock, n.last))
	}
}
