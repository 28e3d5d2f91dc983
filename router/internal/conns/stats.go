package conns

// Stats are figures on the connections of one host.
type Stats struct {
	Conns, Max, Idle int // connections; how many there may be; how many of them nobody uses
	Waiting          int // calls that wait for a connection

	// So far:
	Calls            uint64 // statements by themselves, batches, transactions
	Batches, Batched uint64 // how many times calls of several callers were sent together, and how many calls these were
	Sizes            [BatchLimit + 1]uint64
	Resent           uint64 // calls that were sent once more
	Lost             uint64 // calls whose answers were lost with a connection
}

// Stats returns figures on the connections.
func (ls *Pool) Stats() Stats {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s := Stats{
		Max: len(ls.all), Waiting: len(ls.waiting), Calls: ls.turns,
		Batches: ls.batches, Batched: ls.batched, Sizes: ls.sizes,
		Resent: ls.resent.Load(), Lost: ls.lost.Load(),
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
