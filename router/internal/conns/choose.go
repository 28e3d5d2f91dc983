package conns

import (
	"math"
	"slices"
	"time"
)

const (
	// spread is by how much a shard's requests under way have to exceed its lanes before it gets another one.
	spread = 0.3
	// hot is how many requests under way make a shard share few lanes among them, whether or not there are others that are free.
	hot = 4
	// crowded is how many requests for each connection make a crowd.
	crowded = 2
	// farWay is how long the way to a host and back is if all connections are used in a crowd.
	farWay = 500 * time.Microsecond
	// startedTogether is how many statements of one caller, who starts many, are at least sent down a lane together.
	startedTogether = 16
	// worthwhile is how long the server should have to work for the requests that wait for a lane, before another one is
	// used in a crowd.
	worthwhile = 80 * time.Microsecond
	// pressureLimit is how many of the last requests, pressureRequests on the average, may have found a lane busy before it
	// loses shards to others that are far less so. It is not done lightly: the other has all their statements to prepare.
	pressureLimit    = 0.4
	pressureRequests = 256
)

// choose picks the lane for a request: one that is not busy if the request should have it, a busy one if it should wait for
// that one, nil if it should wait for whichever comes free. The caller holds mu.
func (p *Pool) choose(r *Request, not *lane) *lane {
	s := r.shard
	if s == nil {
		return p.hottest(not)
	}
	use, wide := p.width(s, r)
	var quickest *lane // of the shard's own that are busy
	for i, l := range s.lanes {
		switch {
		case l == not || i >= use && quickest != nil:
		case r.hint != nil && l.state == busy && !l.slow && len(l.queue) < startedTogether:
			return l // what its caller starts besides is on its way there
		case l.state != busy:
			l.pressure -= l.pressure / pressureRequests
			return l
		case !l.slow && (quickest == nil || p.sooner(l, quickest)):
			quickest = l
		}
	}
	if quickest == nil || r.lease {
		if l := p.hottest(not); l != nil || r.lease || len(s.lanes) > 0 {
			return l
		}
		return p.emptiest(not, false) // all are busy, and the shard is new
	}
	quickest.pressure += (1 - quickest.pressure) / pressureRequests
	pressed := quickest.pressure > pressureLimit
	spare := p.spare > 0 && !p.crowd()
	if !wide && !pressed && !spare {
		return quickest
	}
	other := p.emptiest(not, true)
	switch {
	case other == nil || slices.Contains(s.lanes, other):
		return quickest
	case wide || spare && len(other.shards) < p.spare:
		other.learn(s)
		return other
	case !pressed || other.pressure > quickest.pressure/4:
		return quickest
	}
	quickest.pressure = 0 // it takes a while before it loses another one
	quickest.forget(s)
	other.learn(s)
	return other
}

// sooner tells whether a request that waits for the first of two busy lanes is likely to be sent before one that waits for
// the other. Where the way is long, what counts is which of them is back first. The caller holds mu.
func (p *Pool) sooner(l, other *lane) bool {
	if p.Texts.RoundTrip() > farWay && max(len(l.queue), len(other.queue)) < BatchLimit {
		return l.began < other.began
	}
	return len(l.queue) < len(other.queue)
}

// width returns how many of its lanes a shard's requests should use, and whether it should have another one.
//
// As long as a shard has few requests under way and the connections are about enough for all, each request takes one that is free.
// Else a lane that carries many quick statements at a time costs both sides less than many lanes that carry a few each.
func (p *Pool) width(s *Shard, r *Request) (use int, wide bool) {
	if r.lease || s.load < hot && !p.crowd() {
		return len(s.lanes), s.load > float64(len(s.lanes))+spread
	}
	usual := max(r.text.Usual(), time.Microsecond)
	each := min(max(1, float64(worthwhile)/float64(usual)), BatchLimit)
	far := min(1, float64(p.Texts.RoundTrip())/float64(farWay)) // where the way is long, requests under way cost nothing
	all := max(float64(p.few), p.load/each, far*float64(len(p.all)))
	use = max(1, int(math.Ceil(all*s.load/p.load)))
	return use, use > len(s.lanes)
}

// crowd tells whether there are many more requests under way than connections. The caller holds mu.
func (p *Pool) crowd() bool { return p.load > crowded*float64(len(p.all)) }

// hottest returns the lane that was used last of those that are idle and have room for another shard, else one without a
// connection, else the idle one with the fewest shards: a connection that has just been used is quicker than one that
// the server's machine has to wake. The caller holds mu.
func (p *Pool) hottest(not *lane) *lane {
	var hottest, place *lane
	for _, l := range p.all {
		switch {
		case l == not:
		case l.state == absent && place == nil:
			place = l
		case l.state == idle && len(l.shards) < p.room && (hottest == nil || l.freed.After(hottest.freed)):
			hottest = l
		}
	}
	switch {
	case hottest != nil:
		return hottest
	case place != nil:
		return place
	}
	return p.emptiest(not, true)
}

// emptiest returns the lane with the fewest shards; of those without a connection only if no other is as empty. free says
// that it must not be busy, else it must not be slow. The caller holds mu.
func (p *Pool) emptiest(not *lane, free bool) *lane {
	var emptiest *lane
	for _, l := range p.all {
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
