package provision

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// sessions are one session to each of some hosts.
type sessions struct {
	hosts []shards.Host
	open  func(context.Context, shards.Host) (*pgx.Conn, error)
	conns []*pgx.Conn
	locks []*pgx.Conn // that hold the hosts' locks; nil before [sessions.lock]

	// Where the other hosts go on without one that does not answer: why, by host. Its conn is nil. Otherwise nil, and the
	// error of one host ends the work on all.
	unreached []error
}

// connectAll connects to all hosts at once. When a host does not answer, no session is left, and the error joins a
// [shards.HostError] for each such host.
func connectAll(ctx context.Context, hosts []shards.Host, open func(context.Context, shards.Host) (*pgx.Conn, error)) (*sessions, error) {
	s := &sessions{hosts: hosts, open: open, conns: make([]*pgx.Conn, len(hosts))}
	err := each(hosts, func(i int) (err error) {
		s.conns[i], err = open(ctx, hosts[i])
		return err
	})
	if err != nil {
		s.close(ctx)
		return nil, err
	}
	return s, nil
}

// connectReachable connects to the hosts that answer, of any cluster. It leaves out a host that does not answer, then or later,
// and notes it in unreached.
func connectReachable(ctx context.Context, hosts []shards.Host) *sessions {
	s := &sessions{hosts: hosts, conns: make([]*pgx.Conn, len(hosts)), unreached: make([]error, len(hosts))}
	_ = each(hosts, func(i int) (err error) { // which is noted
		if s.conns[i], err = openAnyCluster(ctx, hosts[i]); err != nil {
			s.unreached[i] = &shards.HostError{Host: hosts[i].Name, Err: err}
		}
		return err
	})
	return s
}

// close ends the sessions, also when ctx has ended.
func (s *sessions) close(ctx context.Context) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, conn := range slices.Concat(s.locks, s.conns) {
		if conn != nil {
			_ = conn.Close(closing) // nothing is left to lose in it
		}
	}
}

// each runs fn at once on every host that is reached, and joins the errors as [shards.HostError].
func (s *sessions) each(fn func(i int, conn *pgx.Conn) error) error {
	return each(s.hosts, func(i int) error {
		conn := s.conns[i]
		if conn == nil {
			return nil
		}
		err := connect.NameHolders(context.Background(), conn.PgConn(), fn(i, conn)) // which has a limit of its own
		if err == nil || s.unreached == nil {
			return err
		}
		s.conns[i], s.unreached[i] = nil, &shards.HostError{Host: s.hosts[i].Name, Err: err}
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(closing) // nothing is left to lose in it
		return nil
	})
}

// takeAll reads what every host of the map holds.
func (s *sessions) takeAll(ctx context.Context, m *shards.Map, detailed bool) ([]*inventory, error) {
	inventories := make([]*inventory, len(s.hosts))
	for i, host := range s.hosts {
		inventories[i] = &inventory{host: host} // of one that is not reached
	}
	err := s.each(func(i int, conn *pgx.Conn) error {
		inv, err := take(ctx, conn, m, s.hosts[i], schemaPattern(m), detailed)
		if err == nil {
			inventories[i] = inv
		}
		return err
	})
	return inventories, err
}

// each runs fn for every host at once and joins the errors.
func each(hosts []shards.Host, fn func(i int) error) error {
	errs := make([]error, len(hosts))
	var wg sync.WaitGroup
	for i, host := range hosts {
		wg.Go(func() {
			if err := fn(i); err != nil {
				errs[i] = &shards.HostError{Host: host.Name, Err: err}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
