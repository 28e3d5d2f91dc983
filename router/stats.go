package router

import "time"

// HostStats are figures on the connections of one host.
type HostStats struct {
	Host    string // its name
	Conns   int    // connections, idle or not
	Max     int    // how many there may be
	Idle    int    // of them, how many nobody uses
	Waiting int    // calls that wait for a connection
	Pooler  bool   // there is a pooler before the server

	Breaker     Breaker   // whether calls are let through
	DownSince   time.Time // zero unless the breaker is open
	Primary     string    // address that calls go to, as host:port; empty if none is known
	Timeline    uint32    // of the primary of a host with several addresses; 0 if unknown
	RoleChanges uint64    // so far: how many times another address became the primary

	// So far:
	Calls     uint64 // statements by themselves, batches, transactions
	Batches   uint64 // how many times calls of several callers were sent together
	Batched   uint64 // how many calls these were
	Sizes     Sizes  // how many times so many calls were sent together that waited for a connection
	Resent    uint64 // calls that were sent once more: to another connection, or prepared again
	Lost      uint64 // calls whose answers were lost with a connection
	Retried   uint64 // how many times [Retry] ran a transaction again
	Exhausted uint64 // how many times it gave up
}

// Sizes count, at index n, how many times n calls were sent together.
type Sizes [batchLimit + 1]uint64

// Stats returns figures on each host, in the order of the map.
func (r *Router) Stats() []HostStats {
	hosts := r.now.Load().hosts
	all := make([]HostStats, len(hosts))
	for i, h := range hosts {
		all[i] = h.stats()
	}
	return all
}

func (h *host) stats() HostStats {
	s := h.lines.stats()
	s.Pooler = h.Pooled.Load()
	s.Resent, s.Lost = h.resent.Load(), h.lost.Load()
	s.Retried, s.Exhausted = h.retried.Load(), h.exhausted.Load()
	h.watchStats(&s)
	return s
}

func (ls *lines) stats() HostStats {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s := HostStats{
		Host: ls.host.Name, Max: len(ls.all), Waiting: len(ls.waiting), Calls: ls.turns,
		Batches: ls.batches, Batched: ls.batched, Sizes: ls.sizes,
	}
	for _, l := range ls.all {
		if l.state != absent {
			s.Conns++
		}
		if l.state == idle {
			s.Idle++
		}
		s.Waiting += len(l.queue)
	}
	return s
}
