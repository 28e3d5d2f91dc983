package prove_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// as has a DSN without a password name the user keeper.
func as(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	u.User = url.User("keeper")
	return u.String()
}

const keeper = `create role keeper login password 'first' in role pg_read_all_data, pg_write_all_data`

// TestFailoverAfterRotation loses the primary after a password was changed, and when the new one is kept already and the
// servers know the one before. The standby is found, and new hosts of the map have the same credentials.
func TestFailoverAfterRotation(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	do(t, p.primary.DSN(database), keeper)
	var kept atomic.Value
	kept.Store("first")
	credentials := func(context.Context, shards.Host) (shards.Credentials, error) {
		return shards.Credentials{Password: kept.Load().(string)}, nil
	}
	r := open(t, router.Config{Credentials: credentials, Failover: router.Failover{Wait: testLimit}}, as(t, p.primary.DSN(database)))
	// The host with both addresses, and a replica, comes with a later map.
	changed(t, r, func(c *shards.Config) {
		c.Hosts[0].DSN, c.Hosts[0].Replicas = as(t, dsn(t, p.primary, p.standby)), []string{as(t, p.standby.DSN(database))}
	})
	s := shard(t, r, 1)
	if err := write(t.Context(), s, 1); err != nil {
		t.Fatal(err)
	}
	kept.Store("second")
	do(t, p.primary.DSN(database), `alter role keeper password 'second'`)
	eventually(t, "the replica is used", func() bool {
		var note string
		if err := s.ReadOnly(router.Reads{}).QueryRow(t.Context(), selection, 0).Scan(&note); err != nil {
			t.Fatal(err)
		}
		return r.ReadStats()[0].Replicas[0].Used
	})
	for range 2 { // one of them on a new connection
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
	}
	kept.Store("third") // which no server knows yet
	if err := p.primary.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	isDown(t, r, 0)
	promote(t, p.standby)
	if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, 2) }); err != nil {
		t.Error(err)
	}
	if got := stats(r, 0); got.Primary != address(t, p.standby) {
		t.Errorf("got %+v", got)
	}
}

// TestHostIsNotDownForWantOfCredentials has the function for credentials fail as if a server were gone, and hang, while
// the host works for a call that takes longer than a host may be silent.
func TestHostIsNotDownForWantOfCredentials(t *testing.T) {
	t.Parallel()
	server := start(t)
	do(t, server.DSN(database), keeper)
	type attempt struct {
		name        string
		fails       bool
		r           *router.Router
		out         *log
		leave       context.CancelFunc
		slow, quick chan error
	}
	var attempts []attempt // together, since each takes as long as its slow call
	for name, fail := range map[string]func(context.Context) error{
		"it fails": func(context.Context) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		},
		"it hangs": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		for several, dsn := range map[bool]string{false: server.DSN(database), true: withNobody(t, server)} {
			var ask atomic.Value
			ask.Store(func(context.Context) error { return nil })
			credentials := func(ctx context.Context, _ shards.Host) (shards.Credentials, error) {
				return shards.Credentials{Password: "first"}, ask.Load().(func(context.Context) error)(ctx)
			}
			a := attempt{
				name: fmt.Sprintf("%s, several addresses %t", name, several), fails: name == "it fails",
				out: &log{}, slow: make(chan error, 1), quick: make(chan error, 1),
			}
			a.r = open(t, router.Config{Credentials: credentials, Failover: router.Failover{FailAfter: failSoon}, Logger: a.out.logger()}, as(t, dsn))
			s, n := shard(t, a.r, 1), len(attempts)
			if err := write(t.Context(), s, int64(1+n)); err != nil {
				t.Fatal(err)
			}
			ask.Store(fail)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a.leave = cancel
			query := fmt.Sprintf(`select pg_sleep(7) as slow%d`, n)
			go func() {
				_, err := s.Exec(t.Context(), query)
				a.slow <- err
			}()
			underWay(t, server.DSN(database), fmt.Sprintf("slow%d", n))
			go func() {
				tx, err := s.Begin(ctx) // wants a connection, for which there are no credentials
				if err == nil {
					err = errors.Join(errors.New("there are credentials"), tx.Rollback(ctx))
				}
				a.quick <- err
			}()
			attempts = append(attempts, a)
		}
	}
	for _, a := range attempts {
		if err := <-a.slow; err != nil {
			t.Errorf("%s: %v", a.name, err)
		}
		a.leave()
		var missing *connect.Error
		switch err := <-a.quick; {
		case errors.Is(err, router.ErrHostDown), a.fails && (!errors.As(err, &missing) || !strings.Contains(err.Error(), "no credentials")):
			t.Errorf("%s: %v", a.name, err)
		}
		if got := stats(a.r, 0); got.Breaker != router.BreakerClosed || a.out.count("host down") > 0 {
			t.Errorf("%s: %+v\n%s", a.name, got, a.out.String())
		}
	}
}
