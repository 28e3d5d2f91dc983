package conns

import (
	"math"
	"slices"
	"time"
)

const (
	// spread is by how much a shard's calls under way have to exceed its lines before it gets another one.
	spread = 0.3
	// hot is how many calls under way make a shard share few lines among them, whether or not there are others that are free.
	hot = 4
	// crowded is how many calls for each connection make a crowd.
	crowded = 2
	// farWay is how long the way to a host and back is if all connections are used in a crowd.
	farWay = 500 * time.Microsecond
	// startedTogether is how many statements of one caller, who starts many, are at least sent down a line together.
	startedTogether = 16
	// worthwhile is how long the server should have to work for the calls that wait for a line, before another one is
	// used in a crowd.
	worthwhile = 80 * time.Microsecond
	// pressureLimit is how many of the last calls, pressureCalls on the average, may have found a line busy before it
	// loses shards to others that are far less so. It is not done lightly: the other has all their statements to prepare.
	pressureLimit = 0.4
	pressureCalls = 256
)

// choose picks the line for a call: one that is not busy if the call should have it, a busy one if it should wait for
// that one, nil if it should wait for whichever comes free. The caller holds mu.
func (ls *Pool) choose(c *Request, not *line) *line {
	h := c.shard
	if h == nil {
		return ls.hottest(not)
	}
	use, wide := ls.width(h, c)
	var quickest *line // of the shard's own that are busy
	for i, l := range h.own {
		switch {
		case l == not || i >= use && quickest != nil:
		case c.hint != nil && l.state == busy && !l.slow && len(l.queue) < startedTogether:
			return l // what its caller starts besides is on its way there
		case l.state != busy:
			l.pressure -= l.pressure / pressureCalls
			return l
		case !l.slow && (quickest == nil || ls.sooner(l, quickest)):
			quickest = l
		}
	}
	if quickest == nil || c.lease {
		if l := ls.hottest(not); l != nil || c.lease || len(h.own) > 0 {
			return l
		}
		return ls.emptiest(not, false) // all are busy, and the shard is new
	}
	quickest.pressure += (1 - quickest.pressure) / pressureCalls
	pressed := quickest.pressure > pressureLimit
	spare := ls.spare > 0 && !ls.crowd()
	if !wide && !pressed && !spare {
		return quickest
	}
	other := ls.emptiest(not, true)
	switch {
	case other == nil || slices.Contains(h.own, other):
		return quickest
	case wide || spare && len(other.shards) < ls.spare:
		other.learn(h)
		return other
	case !pressed || other.pressure > quickest.pressure/4:
		return quickest
	}
	quickest.pressure = 0 // it takes a while before it loses another one
	quickest.forget(h)
	other.learn(h)
	return other
}

// sooner tells whether a call that waits for the first of two busy lines is likely to be sent before one that waits for
// the other. Where the way is long, what counts is which of them is back first. The caller holds mu.
func (ls *Pool) sooner(l, other *line) bool {
	if ls.Texts.RoundTrip() > farWay && max(len(l.queue), len(other.queue)) < BatchLimit {
		return l.began < other.began
	}
	return len(l.queue) < len(other.queue)
}

// width returns how many of its lines a shard's calls should use, and whether it should have another one.
//
// As long as a shard has few calls under way and the connections are about enough for all, each call takes one that is free.
// Else a line that carries many quick statements at a time costs both sides less than many lines that carry a few each.
func (ls *Pool) width(h *Shard, c *Request) (use int, wide bool) {
	if c.lease || h.load < hot && !ls.crowd() {
		return len(h.own), h.load > float64(len(h.own))+spread
	}
	usual := max(c.text.Usual(), time.Microsecond)
	each := min(max(1, float64(worthwhile)/float64(usual)), BatchLimit)
	far := min(1, float64(ls.Texts.RoundTrip())/float64(farWay)) // where the way is long, calls under way cost nothing
	all := max(float64(ls.few), ls.load/each, far*float64(len(ls.all)))
	use = max(1, int(math.Ceil(all*h.load/ls.load)))
	return use, use > len(h.own)
}

// crowd tells whether there are many more calls under way than connections. The caller holds mu.
func (ls *Pool) crowd() bool { return ls.load > crowded*float64(len(ls.all)) }

// hottest returns the line that was used last of those that are idle and have room for another shard, else one without a
// connection, else the idle one with the fewest shards: a connection that has just been used is quicker than one that
// the server's machine has to call to mind. The caller holds mu.
func (ls *Pool) hottest(not *line) *line {
	var hottest, place *line
	for _, l := range ls.all {
		switch {
		case l == not:
		case l.state == absent && place == nil:
			place = l
		case l.state == idle && len(l.shards) < ls.room && (hottest == nil || l.freed.After(hottest.freed)):
			hottest = l
		}
	}
	switch {
	case hottest != nil:
		return hottest
	case place != nil:
		return place
	}
	return ls.emptiest(not, true)
}

// emptiest returns the line with the fewest shards; of those without a connection only if no other is as empty. free says
// that it must not be busy, else it must not be slow. The caller holds mu.
func (ls *Pool) emptiest(not *line, free bool) *line {
	var emptiest *line
	for _, l := range ls.all {
		if l == not || free && l.state == busy || !free && l.slow {
			continue
		}
		fewer := emptiest == nil || len(l.shards) < len(emptiest.shards)
		if fewer || len(l.shards) == len(emptiest.shards) && emptiest.state == absent {
			emptiest = l
		}
	}
	return emptiest
}
