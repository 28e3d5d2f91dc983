package hosts

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision/internal/session"
)

// Sessions has one session to each of several hosts.
type Sessions struct {
	hosts []shards.Host
	open  func(context.Context, shards.Host) (*pgx.Conn, error)
	conns []*pgx.Conn
	locks []*pgx.Conn // the sessions that hold the hosts' locks; nil before [Sessions.Lock]

	// Of [ConnectReachable]: the error of each host that does not answer. Otherwise nil.
	unreached []error
}

// Connect connects to all hosts at once, by open. If a host does not answer, the error joins a [shards.HostError] for
// each such host, and no session is left.
func Connect(ctx context.Context, hosts []shards.Host, open func(context.Context, shards.Host) (*pgx.Conn, error)) (*Sessions, error) {
	s := &Sessions{hosts: hosts, open: open, conns: make([]*pgx.Conn, len(hosts))}
	err := Each(hosts, func(i int) (err error) {
		s.conns[i], err = open(ctx, hosts[i])
		return err
	})
	if err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// ConnectReachable connects to all hosts that answer, of any cluster. It leaves out a host that does not answer, now or
// in a later [Sessions.Each].
func ConnectReachable(ctx context.Context, hosts []shards.Host) *Sessions {
	s := &Sessions{hosts: hosts, open: session.OpenAnyCluster, conns: make([]*pgx.Conn, len(hosts)), unreached: make([]error, len(hosts))}
	_ = Each(hosts, func(i int) (err error) { // unreached has the errors
		if s.conns[i], err = s.open(ctx, hosts[i]); err != nil {
			s.unreached[i] = &shards.HostError{Host: hosts[i].Name, Err: err}
		}
		return err
	})
	return s
}

// Unreached returns, by host, the errors of hosts that [ConnectReachable] or a later [Sessions.Each] has left out.
func (s *Sessions) Unreached() []error { return s.unreached }

// Hosts returns the hosts, those that were left out included.
func (s *Sessions) Hosts() []shards.Host { return s.hosts }

// Each runs fn on every host at once, without those that were left out, and joins the errors as [shards.HostError]. An
// error about a lock names the lock's holders. With [ConnectReachable], a host with an error is left out, and the
// result is nil.
func (s *Sessions) Each(fn func(i int, conn *pgx.Conn) error) error {
	return Each(s.hosts, func(i int) error {
		conn := s.conns[i]
		if conn == nil {
			return nil
		}
		err := connect.NameHolders(context.Background(), conn.PgConn(), fn(i, conn)) // it has a time limit
		if err == nil || s.unreached == nil {
			return err
		}
		s.conns[i], s.unreached[i] = nil, &shards.HostError{Host: s.hosts[i].Name, Err: err}
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(closing) // its work is lost already
		return nil
	})
}

// Close ends the sessions, also after ctx has ended. It takes at most 5 seconds.
func (s *Sessions) Close(ctx context.Context) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, conn := range slices.Concat(s.locks, s.conns) {
		if conn != nil {
			_ = conn.Close(closing) // all its work is committed
		}
	}
}

// Each runs fn for every host at once, and joins the errors as [shards.HostError].
func Each(hosts []shards.Host, fn func(i int) error) error {
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
