package prove_test

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// named has names looked up by a function, once it is there.
func named(by *atomic.Pointer[func() ([]string, error)]) func(shards.Host, *pgxpool.Config) error {
	return func(_ shards.Host, cfg *pgxpool.Config) error {
		lookup := cfg.ConnConfig.LookupFunc
		cfg.ConnConfig.LookupFunc = func(ctx context.Context, host string) ([]string, error) {
			if fn := by.Load(); fn != nil {
				return (*fn)()
			}
			return lookup(ctx, host)
		}
		return nil
	}
}

// TestNamesCannotBeLookedUp has the name service fail for a while. A host whose connections work is not down by it.
func TestNamesCannotBeLookedUp(t *testing.T) {
	t.Parallel()
	var by atomic.Pointer[func() ([]string, error)]
	var out log
	r := open(t, router.Config{Pool: named(&by), Logger: out.logger(), Failover: router.Failover{FailAfter: failSoon}}, start(t).DSN(database))
	s := shard(t, r, 1)
	if err := read(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	fail := func() ([]string, error) {
		return nil, &net.DNSError{Err: "server misbehaving", Name: "pg-a", IsTemporary: true}
	}
	by.Store(&fail)
	stop, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				failed <- nil
				return
			case <-time.After(time.Millisecond): // leaves time to other tests
			}
			if err := read(context.Background(), s); err != nil { // on the connection that there is
				failed <- err
				return
			}
		}
	}()
	deadline := time.Now().Add(2 * failSoon)
	for time.Now().Before(deadline) {
		tx, err := s.Begin(t.Context())
		var unknown *net.DNSError
		switch {
		case err == nil: // it had the one connection
			err = tx.Rollback(t.Context())
		case errors.As(err, &unknown) && !errors.Is(err, router.ErrHostDown):
			err = nil
		}
		if err != nil {
			t.Error(err)
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(stop)
	if err := <-failed; err != nil {
		var unknown *net.DNSError
		if !errors.As(err, &unknown) || errors.Is(err, router.ErrHostDown) {
			t.Errorf("a read: %v", err)
		}
	}
	if out.count(`"host down"`) > 0 {
		t.Errorf("logged:\n%s", out.String())
	}
}

// TestNameOfSeveralAddresses has a name stand for two addresses, of which the first takes connections and never answers.
func TestNameOfSeveralAddresses(t *testing.T) {
	t.Parallel()
	server := start(t)
	_, port, err := net.SplitHostPort(address(t, server))
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal(err)
	case err != nil:
		t.Skipf("there is no 127.0.0.2 here: %v", err)
	}
	defer silent.Close()
	var by atomic.Pointer[func() ([]string, error)]
	both := func() ([]string, error) { return []string{"127.0.0.2", "127.0.0.1"}, nil }
	by.Store(&both)
	cfg := router.Config{Pool: named(&by), Failover: router.Failover{FailAfter: failSoon}}
	r := open(t, cfg, server.DSN(database)+"&connect_timeout=3")
	if err := write(t.Context(), shard(t, r, 1), 1); err != nil {
		t.Error(err)
	}
	if got := stats(r, 0); got.Breaker == router.BreakerOpen {
		t.Errorf("got %+v", got)
	}
}
