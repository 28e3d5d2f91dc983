package replica

import "time"

// Stats are statistics of a set.
type Stats struct {
	Replicas  []Status
	Measuring bool
	Trouble   error // why the last measurement of the primary failed
}

// Status is the status of one replica.
type Status struct {
	Why      error         // why it does not qualify; nil if it qualifies
	Measured time.Time     // zero if never, or if the last attempt failed
	Lag      time.Duration // maximum age of the data that a read would see now; 0 if unknown
	Behind   int64         // bytes of the primary's WAL that it had not replayed at the last measurement
}

// Stats returns statistics of the set, for a reader with this Want.
func (s *Set) Stats(want *Want) Stats {
	all := Stats{Measuring: s.measuring.Load()}
	s.mu.Lock()
	defer s.mu.Unlock()
	all.Trouble = s.trouble
	now := time.Now()
	for _, r := range s.all {
		known := r.now.Load()
		one := Status{Why: known.whyNot(now, want)}
		if known != nil {
			one.Measured = known.measured
			if !known.asOf.IsZero() {
				one.Lag, one.Behind = known.lag(now), r.behind
			}
		}
		all.Replicas = append(all.Replicas, one)
	}
	return all
}
