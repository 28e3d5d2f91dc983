package conns

import (
	"github.com/kiloshard/kiloshard/router/internal/session"
)

// Init puts a shard on a host. It is called once, before anything else.
func (s *Shard) Init(p *Pool, shard session.Shard) {
	s.Shard, s.pool = shard, p
	s.Host = p.Host
}

// Leave says that the shard has gone to another host: requests that wait for a lane go there.
func (s *Shard) Leave() {
	s.gone.Store(true)
}

// Gone reports whether the shard has gone to another host.
func (s *Shard) Gone() bool { return s.gone.Load() }
