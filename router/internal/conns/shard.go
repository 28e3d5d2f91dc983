package conns

import (
	"slices"

	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Init puts a shard on a host. It is called once, before anything else.
func (s *Shard) Init(ls *Pool, shard session.Shard) {
	s.Shard, s.conns = shard, ls
	s.Host = ls.Host
}

// Leave says that the shard has gone to another host: calls that wait for a line are to go there, and no line is kept for it.
func (s *Shard) Leave() {
	s.gone.Store(true)
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for len(s.own) > 0 {
		s.own[0].forget(s)
	}
}

// Gone reports whether the shard has gone to another host.
func (s *Shard) Gone() bool { return s.gone.Load() }

// learn makes the line one of the shard's. The caller holds mu.
func (l *line) learn(h *Shard) {
	l.known[h.Number] = struct{}{}
	h.own = append(h.own, l)
	l.shards = append(l.shards, h)
}

// use notes that the line works for a shard, which becomes its own if it has no other. The caller holds mu.
func (l *line) use(h *Shard) {
	switch {
	case h == nil || slices.Contains(h.own, l):
	case len(h.own) == 0 && !h.gone.Load():
		l.learn(h)
	default:
		l.known[h.Number] = struct{}{}
	}
}

// forget makes the line none of the shard's. The caller holds mu.
func (l *line) forget(h *Shard) {
	h.own = slices.DeleteFunc(h.own, func(other *line) bool { return other == l })
	l.shards = slices.DeleteFunc(l.shards, func(other *Shard) bool { return other == h })
}

// forgetAll takes the line away from all its shards. The caller holds mu.
func (l *line) forgetAll() {
	for _, h := range l.shards {
		h.own = slices.DeleteFunc(h.own, func(other *line) bool { return other == l })
	}
	l.shards = nil
}
