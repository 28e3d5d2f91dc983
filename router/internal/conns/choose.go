package conns

import (
	"math"
	"time"
)

// Each of these has a line of bench route or bench stores that gets worse without it.
const (
	// fewLanes is how many lanes reads share at least (many, 16 goroutines): a group grows while the one before it is under
	// way, and a server process that stays busy costs less than many that take turns.
	fewLanes = 2
	// laneRoom is for how many shards a lane of reads is meant (schemas): what a session knows of so many costs no more than
	// of one.
	laneRoom = 64
	// laneWork is how long the server should have to work for the reads of a lane before reads use more lanes, and laneReads
	// how many reads that is at most (many, 256 goroutines).
	laneWork  = 300 * time.Microsecond
	laneReads = 2 * BatchLimit
	// farWay is how long the way to a host and back is if reads use all lanes, and wait for each other (delay).
	farWay = 500 * time.Microsecond
	// wantedRequests is over how many reads the number of lanes that they want is averaged (many, 16 goroutines).
	wantedRequests = 256
	// crowdWork and crowdReads are the same for statements that a caller starts together, and that go down one lane: such a caller waits for
	// all of it, and one message is one way to the host and back (getmany).
	crowdWork  = 10 * time.Millisecond
	crowdReads = 2 * laneRoom
)

// choose picks the lane for a request: one that is not busy if the request should have it, a busy one if it should wait for
// that one, nil if it should wait for whichever comes free. The caller holds mu.
func (p *Pool) choose(r *Request, not *lane) *lane {
	if !r.lease {
		if l := p.chooseReading(r, not); l != nil {
			return l
		}
	}
	return p.chooseFree(r.shard, not)
}

// chooseReading picks one of the lanes of a shard's reads: the first that is free or gathers reads, else the one that is likely
// to send first. Of the lanes for reads a shard has the same share as of the requests, and always the same ones: their sessions
// know its tables and keep its statements prepared. Where the way is long it may have all. The caller holds mu.
func (p *Pool) chooseReading(r *Request, not *lane) *lane {
	s, lanes := r.shard, p.readingLanes(r)
	own := min(max(1, int(math.Ceil(float64(lanes)*s.load/p.load))), lanes)
	switch {
	case r.hint != nil: // all in one message, unless that would be too much
		own, lanes = 1, min(max(1, int(math.Ceil(p.crowdLanes(r)))), lanes)
	case p.far():
		own = lanes
	}
	var soonest *lane
	for i := range own {
		l := p.all[(int(s.Number)+i)%lanes]
		switch {
		case l == not || l.slow:
		case l.gathering && len(l.queue) < BatchLimit:
			return l
		case l.state != busy:
			return l
		case soonest == nil || p.sooner(l, soonest):
			soonest = l
		}
	}
	return soonest
}

// readingLanes returns how many lanes the reads of all shards use now: few, as long as these have little to do, and all if
// the way to the server is long. The caller holds mu.
func (p *Pool) readingLanes(r *Request) int {
	wanted, usual := float64(len(p.all)), float64(max(1, r.text.Usual()))
	switch {
	case r.hint != nil:
		wanted = p.crowdLanes(r)
	case !p.far():
		wanted = p.load / min(max(1, float64(laneWork)/usual), laneReads)
	}
	p.wanted += (wanted - p.wanted) / wantedRequests
	// Not with every request: a shard's statements are prepared again on a lane that is new to it.
	if reading := float64(p.reading); p.wanted > reading || p.wanted < reading/2 && p.reading > p.few {
		p.reading = p.few
		for float64(p.reading) < p.wanted {
			p.reading *= 2
		}
		p.reading = min(p.reading, len(p.all))
	}
	return p.reading
}

// crowdLanes returns how many lanes the statements of a crowd want.
func (p *Pool) crowdLanes(r *Request) float64 {
	return p.load / min(max(1, float64(crowdWork)/float64(max(1, r.text.Usual()))), crowdReads)
}

// far reports whether the way to the server and back is long.
func (p *Pool) far() bool { return p.Texts.RoundTrip() > farWay }

// sooner reports whether a request that waits for the first of two busy lanes is likely to be sent before one that waits for
// the other. Where the way is long, what counts is which of them is back first. The caller holds mu.
func (p *Pool) sooner(l, other *lane) bool {
	if p.far() && max(len(l.queue), len(other.queue)) < BatchLimit {
		return l.began < other.began
	}
	return len(l.queue) < len(other.queue)
}

// chooseFree picks a lane that is not busy, and nil if there is none: one with a connection if possible, and rather none that
// reads use. Each shard begins to look at a place of its own, where the sessions are likely to know it. The caller holds mu.
func (p *Pool) chooseFree(s *Shard, not *lane) *lane {
	others := len(p.all) - p.reading
	at := func(i int) *lane {
		start := 0
		if s != nil {
			start = int(s.Number)
		}
		if i < others {
			return p.all[p.reading+(start+i)%others]
		}
		return p.all[(start+i)%p.reading]
	}
	var place *lane
	for i := range p.all {
		l := at(i)
		switch {
		case l == not:
		case l.state == idle:
			if i >= others && others > 0 && place != nil {
				place.openFor(nil) // for the next one: reads should keep their lanes
			}
			return l
		case l.state == absent && place == nil:
			place = l
		}
	}
	return place
}
