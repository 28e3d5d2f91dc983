package router

import (
	"time"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Batch is how many calls are sent together at most.
const Batch = conns.BatchLimit

// LongAnswer is the size of an answer past which it is not kept for a caller who shares a connection.
const LongAnswer = conns.LongAnswer

// KeepFor is how long a session that keeps the path of a shard sends no entry.
const KeepFor = session.KeepFor

// LimitHomes sets how many shards a connection to any host may have worked for.
func (r *Router) LimitHomes(n int) {
	for _, h := range r.now.Load().hosts {
		h.Pool.LimitKnown(n)
	}
}

// Late returns how many reads have been sent once more because their group was late.
func (r *Router) Late() (late uint64) {
	for _, h := range r.now.Load().hosts {
		late += h.Pool.Stats().Late
	}
	return late
}

// Slow tells whether a statement is kept away from others on the shard's host.
func (s Shard) Slow(sql string) bool {
	texts := s.placement.host.Texts
	return texts.Slow(texts.Of(sql))
}

// Repeats tells whether a statement may run more than once on the shard's host.
func (s Shard) Repeats(sql string) bool { return s.placement.host.Texts.Of(sql).Repeats() }

// LimitClose sets how long Close waits for connections in use.
func (r *Router) LimitClose(d time.Duration) { r.closeLimit = d }

// MeasureFor sets how long after the last read replicas are measured.
func (r *Router) MeasureFor(d time.Duration) {
	for _, h := range r.now.Load().hosts {
		h.replicas.MeasureFor(d)
	}
}
