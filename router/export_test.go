package router

import (
	"context"
	"net"
	"time"
)

// OnlyReads tells whether SQL may be sent together with that of other callers.
func OnlyReads(sql string) bool { return traitsOf(sql).reads }

// Leaves tells whether SQL may leave something behind on a session.
func Leaves(sql string) bool { return traitsOf(sql).leaves }

// GoesOn tells whether SQL goes on after it has ended a transaction.
func GoesOn(sql string) bool { return traitsOf(sql).goesOn }

// Summarize returns what SQL does to which tables.
func Summarize(sql string) string { return summarize(sql) }

// Batch is how many calls are sent together at most.
const Batch = batchLimit

// AnswerPart is the size of an answer past which it is handed out in parts.
const AnswerPart = answerPart

// AheadEnough is how many statements in a row have a connection stay with a shard.
const AheadEnough = aheadEnough

// LimitHomes sets how many shards a connection to any host may have worked for.
func (r *Router) LimitHomes(n int) {
	for _, h := range r.now.Load().hosts {
		h.knownLimit = n
	}
}

// Slow tells whether a statement is kept away from others on the shard's host.
func (s Shard) Slow(sql string) bool {
	texts := s.home.host.texts
	return texts.slow(texts.of(sql))
}

// MeasureFor sets how long after the last read replicas are measured.
func (r *Router) MeasureFor(d time.Duration) {
	for _, h := range r.now.Load().hosts {
		h.replicas.lasts.Store(int64(d))
	}
}

// History is where the log of a primary was.
type History struct{ log history }

// NewHistory returns one that is empty.
func NewHistory() *History { return &History{} }

// Add adds a moment.
func (h *History) Add(at time.Time, inserted, flushed uint64, slack time.Duration) {
	h.log.add(moment{at: at, inserted: inserted, flushed: flushed, slack: slack})
}

// AsOf returns as of when a replica is that has come to a place.
func (h *History) AsOf(place uint64) time.Time { return h.log.asOf(place) }

// Repeats tells whether SQL may run twice.
func Repeats(sql string) bool { return traitsOf(sql).repeats }

// Uncertain tells whether a statement that failed may have been done all the same.
func Uncertain(err error) bool { return uncertain(err) }

// DialWhileItFalls dials an address that is found down meanwhile, and up again before the dialling has ended if so said.
// The inner dialling succeeds or fails.
func DialWhileItFalls(ctx context.Context, upAgain, succeeds bool) (net.Conn, error) {
	a := newAddress("127.0.0.1", 1)
	return a.dial(func(ctx context.Context, _, _ string) (net.Conn, error) {
		a.bar(ErrHostDown)
		if upAgain {
			a.open()
		}
		if !succeeds {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, other := net.Pipe()
		_ = other.Close()
		return conn, nil
	})(ctx, "tcp", a.String())
}
