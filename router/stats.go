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

// Sizes count, at index n, how many times n calls were sent together; the last one: so many or more.
type Sizes [33]uint64

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
	now := h.Pool.Stats()
	s := HostStats{
		Host: h.Name, Conns: now.Conns, Max: now.Max, Idle: now.Idle, Waiting: now.Waiting, Pooler: h.Pooled.Load(),
		Calls: now.Calls, Batches: now.Batches, Batched: now.Batched, Sizes: now.Sizes, Resent: now.Resent, Lost: now.Lost,
	}
	s.Retried, s.Exhausted = h.retried.Load(), h.exhausted.Load()
	h.watchStats(&s)
	return s
}

// ReplicaStats are figures on one replica.
type ReplicaStats struct {
	Name    string // of the host and its index in the map, such as pg-a/0
	Address string // host, port and database, without a user or password; empty if the DSN is no URL

	Used     bool          // by readers with the default MaxLag, as of now
	Why      string        // it is not used; empty if it is
	Measured time.Time     // last; zero if never, or if the last attempt failed
	Lag      time.Duration // how old at most is what a read would see now; 0 if unknown
	Behind   int64         // bytes of the primary's log that it had not replayed when it was measured

	Reads  uint64 // so far: how many were sent to it
	Failed uint64 // so far: how many of them another server had to answer
	Conns  int    // connections of its pool
}

// ReadStats are figures on what the readers of one host do.
type ReadStats struct {
	Host       string // its name
	Replicas   []ReplicaStats
	OnPrimary  uint64 // so far: reads that the primary got, since no replica would do
	Hedged     uint64 // so far: reads that were sent to a second server
	HedgesWon  uint64 // so far: how many of them the second server answered first
	Measuring  bool   // whether the replicas are being measured, which ends when nobody reads
	PrimaryErr string // why the primary's log could not be looked at the last time
}

// ReadStats returns figures on the readers of each host that has replicas, in the order of the map.
func (r *Router) ReadStats() []ReadStats {
	var all []ReadStats
	for _, h := range r.now.Load().hosts {
		if h.replicas != nil {
			all = append(all, h.replicas.stats())
		}
	}
	return all
}

func (rs *replicas) stats() ReadStats {
	want := Reads{}.withDefaults().want()
	now := rs.Set.Stats(&want)
	s := ReadStats{
		Host: rs.primary.Name, OnPrimary: rs.fallback.Load(), Hedged: rs.hedged.Load(), HedgesWon: rs.won.Load(),
		Measuring: now.Measuring,
	}
	if now.Trouble != nil {
		s.PrimaryErr = now.Trouble.Error()
	}
	for i, r := range rs.all {
		known := now.Replicas[i]
		one := ReplicaStats{
			Name: r.place.Name, Address: r.place.Address(), Reads: r.reads.Load(), Failed: r.failed.Load(),
			Used: known.Why == nil, Measured: known.Measured, Lag: known.Lag, Behind: known.Behind,
		}
		if known.Why != nil {
			one.Why = known.Why.Error()
		}
		if h := r.pool.Load(); h != nil {
			one.Conns = h.Pool.Stats().Conns
		}
		s.Replicas = append(s.Replicas, one)
	}
	return s
}

// watchStats adds what is known of the primary.
func (h *host) watchStats(s *HostStats) {
	now := h.Pool.Primary()
	switch {
	case !now.Up:
		s.Breaker = BreakerOpen
	case now.HalfOpen:
		s.Breaker = BreakerHalfOpen
	}
	s.DownSince, s.Primary, s.Timeline, s.RoleChanges = now.DownSince, now.Primary, now.Timeline, now.Changes
}
