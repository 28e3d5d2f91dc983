package conns

// Stats are figures on the connections of one host.
type Stats struct {
	Conns, Max, Idle int // connections; how many there may be; how many of them nobody uses
	Waiting          int // requests that wait for a connection

	// So far:
	Calls            uint64 // statements by themselves, batches, transactions
	Batches, Batched uint64 // how many times requests of several callers were sent together, and how many requests these were
	Sizes            [BatchLimit + 1]uint64
	Resent           uint64 // requests that were sent once more
	Late             uint64 // how many of them because their group was late
	Lost             uint64 // requests whose answers were lost with a connection
}

// Stats returns figures on the connections.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{
		Max: len(p.all), Waiting: len(p.waiting), Calls: p.turns,
		Batches: p.batches, Batched: p.batched, Sizes: p.sizes,
		Resent: p.resent.Load(), Late: p.late, Lost: p.lost.Load(),
	}
	for _, l := range p.all {
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
