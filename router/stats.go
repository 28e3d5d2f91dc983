package router

import "time"

// HostStats are figures of one host and its connections.
type HostStats struct {
	Host    string // its name
	Conns   int    // open connections
	Max     int    // limit of open connections
	Idle    int    // open connections that are not in use
	Waiting int    // calls that wait for a connection
	Pooler  bool   // a pooler is between the router and the server

	Breaker     Breaker   // whether calls may go to the host
	DownSince   time.Time // zero if the breaker is not open
	Primary     string    // address that calls go to, as host:port; empty if none is known
	Timeline    uint32    // of the primary of a host with several addresses; 0 if unknown
	RoleChanges uint64    // how many times another address became the primary
	Rivals      int       // other addresses that take writes as well: their server was not told of a promotion, or is another cluster's

	// Counts since the router opened the host:
	Calls     uint64 // single statements, batches and transactions
	Batches   uint64 // groups: calls of several callers that were sent together
	Batched   uint64 // calls in these groups
	Sizes     Sizes  // how many calls were sent together after a wait for a connection
	Entered   uint64 // groups, and statements and batches by themselves, that were sent behind an entry
	Kept      uint64 // those that were sent without one, since the session had kept the shard's path: see the package
	Resent    uint64 // calls that were sent again: on another connection, or after their statement was prepared again
	Lost      uint64 // calls whose answers were lost with a connection
	Retried   uint64 // times that [Retry] ran a transaction again
	Exhausted uint64 // times that [Retry] gave up
}

// Sizes counts at index n how many times n calls were sent together. The last index counts larger numbers, too.
type Sizes [33]uint64

// Stats returns the figures of all hosts, in the order of the map.
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
	s.Entered, s.Kept = h.Entered.Load(), h.Kept.Load()
	h.watchStats(&s)
	return s
}

// ReplicaStats are figures of one replica.
type ReplicaStats struct {
	Name    string // of the host and its index in the map, such as pg-a/0
	Address string // host, port and database, without a user or password; empty if the DSN is no URL

	Used     bool          // whether readers with the default MaxLag use it now
	Why      string        // why they do not; empty if they do
	Measured time.Time     // time of the last measurement; zero if there is none, or the last attempt failed
	Lag      time.Duration // upper limit of how old the data is that a read sees now; 0 if unknown
	Behind   int64         // bytes of WAL that it had not replayed at the last measurement

	Reads  uint64 // reads that were sent to it so far
	Failed uint64 // those of them that another server had to answer
	Conns  int    // open connections of its pool
}

// ReadStats are figures of the readers of one host.
type ReadStats struct {
	Host       string // its name
	Replicas   []ReplicaStats
	OnPrimary  uint64 // reads so far that went to the primary, because no replica qualified
	Hedged     uint64 // reads so far that were sent to a second server
	HedgesWon  uint64 // those of them that the second server answered first
	Measuring  bool   // whether the router measures the replicas; it stops when there are no reads
	PrimaryErr string // why the last measurement of the primary failed; empty if it did not
}

// ReadStats returns the figures of the readers of each host that has replicas, in the order of the map.
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

// watchStats adds what the router knows about the primary.
func (h *host) watchStats(s *HostStats) {
	now := h.Pool.Primary()
	switch {
	case !now.Up:
		s.Breaker = BreakerOpen
	case now.HalfOpen:
		s.Breaker = BreakerHalfOpen
	}
	s.DownSince, s.Primary, s.Timeline, s.RoleChanges, s.Rivals = now.DownSince, now.Primary, now.Timeline, now.Changes, now.Rivals
}
