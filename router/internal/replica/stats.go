package replica

import "time"

// Stats are figures on a set.
type Stats struct {
	Replicas  []Status
	Measuring bool
	Trouble   error // why the primary could not be asked the last time
}

// Status is what is known of one replica.
type Status struct {
	Why      error         // it will not do; nil if it will
	Measured time.Time     // zero if never, or if the last attempt failed
	Lag      time.Duration // how old at most is what a read would see now; 0 if unknown
	Behind   int64         // bytes of the primary's log that it had not replayed when it was measured
}

// Stats returns figures on the set, for a reader that wants this.
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
