package router

// HostStats are figures on the connections of one host.
type HostStats struct {
	Host    string // its name
	Conns   int    // connections, idle or not
	Idle    int    // of them, how many nobody uses
	Waiting int    // calls that wait for a connection
	Calls   uint64 // so far: statements by themselves, batches, transactions
	Batches uint64 // so far: how many times calls of several callers were sent together
	Batched uint64 // so far: how many calls these were
}

// Stats returns figures on each host, in the order of the map.
func (r *Router) Stats() []HostStats {
	all := make([]HostStats, len(r.hosts))
	for i, h := range r.hosts {
		all[i] = h.lines.stats()
	}
	return all
}

func (ls *lines) stats() HostStats {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	s := HostStats{
		Host: ls.host.Name, Waiting: len(ls.waiting), Calls: ls.turns, Batches: ls.batches, Batched: ls.batched,
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
