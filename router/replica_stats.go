package router

import "time"

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
			one.Conns = h.lines.Stats().Conns
		}
		s.Replicas = append(s.Replicas, one)
	}
	return s
}
