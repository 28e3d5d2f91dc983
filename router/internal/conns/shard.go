package conns

import (
	"slices"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Init puts a shard on a host. It is called once, before anything else.
func (s *Shard) Init(p *Pool, shard session.Shard) {
	s.Shard, s.pool = shard, p
	s.Host = p.Host
}

// Leave says that the shard has gone to another host: requests that wait for a lane go there, and no lane is kept for it.
func (s *Shard) Leave() {
	s.gone.Store(true)
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	for len(s.lanes) > 0 {
		s.lanes[0].forget(s)
	}
}

// Gone reports whether the shard has gone to another host.
func (s *Shard) Gone() bool { return s.gone.Load() }

// learn makes the lane one of the shard's. The caller holds mu.
func (l *lane) learn(s *Shard) {
	l.known[s.Number] = struct{}{}
	s.lanes = append(s.lanes, l)
	l.shards = append(l.shards, s)
}

// use notes that the lane works for a shard. A shard without lanes gets this one. The caller holds mu.
func (l *lane) use(s *Shard) {
	switch {
	case s == nil || slices.Contains(s.lanes, l):
	case len(s.lanes) == 0 && !s.gone.Load():
		l.learn(s)
	default:
		l.known[s.Number] = struct{}{}
	}
}

// forget makes the lane none of the shard's. The caller holds mu.
func (l *lane) forget(s *Shard) {
	s.lanes = slices.DeleteFunc(s.lanes, func(other *lane) bool { return other == l })
	l.shards = slices.DeleteFunc(l.shards, func(other *Shard) bool { return other == s })
}

// forgetAll takes the lane away from all its shards. The caller holds mu.
func (l *lane) forgetAll() {
	for _, s := range l.shards {
		s.lanes = slices.DeleteFunc(s.lanes, func(other *lane) bool { return other == l })
	}
	l.shards = nil
}
