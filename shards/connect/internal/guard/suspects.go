package guard

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// suspectPause is how long an address whose server sent what a [guard] refuses gets no other login: one at a time, once a second.
const suspectPause = time.Second

// suspects are the addresses of a config whose servers sent what a guard refuses. It is safe for concurrent use.
type suspects struct {
	mu  sync.Mutex
	all map[string]suspect
}

type suspect struct {
	why  error
	next time.Time // when another login may try
}

// watch has a config dial no suspect before its time: connecting fails at once, with the same error as before.
func (s *suspects) watch(c *pgconn.Config) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := s.mayTry(address); err != nil {
			return nil, err
		}
		return dial(ctx, network, address)
	}
}

func (s *suspects) mayTry(address string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[address]
	now := time.Now()
	if !ok {
		return nil
	}
	if now.Before(one.next) {
		return one.why
	}
	s.all[address] = suspect{one.why, now.Add(suspectPause)} // for the others
	return nil
}

// add notes why the server at an address is suspect; nil if it is not.
func (s *suspects) add(address string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if why == nil {
		delete(s.all, address)
		return
	}
	if s.all == nil {
		s.all = map[string]suspect{}
	}
	s.all[address] = suspect{why, time.Now().Add(suspectPause)}
}
