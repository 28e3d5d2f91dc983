package prove_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// TestOneOfTwoHosts loses a host with one address, in each of several ways, and has it back. Its calls fail at once, those
// to the other one go on.
func TestOneOfTwoHosts(t *testing.T) {
	t.Parallel()
	one, other := start(t), start(t)
	var out log
	r := open(t, router.Config{Logger: out.logger(), Failover: router.Failover{FailAfter: failSoon}}, one.DSN(database), other.DSN(database))
	s, its := shard(t, r, 1), shard(t, r, shardCount+1)
	rounds := 0
	for _, way := range []struct {
		name         string
		end, restore func(context.Context) error
	}{
		{"killed", one.Kill, one.Restart},
		{"frozen", one.Freeze, one.Thaw},
	} {
		for range 5 {
			if err := errors.Join(read(t.Context(), s), read(t.Context(), its)); err != nil {
				t.Fatal(err)
			}
		}
		stop, others := make(chan struct{}), sync.WaitGroup{}
		for range 3 {
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond): // leaves time to other tests
					}
					if err := read(context.Background(), its); err != nil {
						t.Errorf("%s: the other host: %v", way.name, err)
						return
					}
				}
			})
		}
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := way.end(t.Context()); err != nil {
			t.Fatal(err)
		}
		// More calls than there are connections, none with a time limit.
		errs := make(chan error, 20)
		for i := range cap(errs) {
			go func() {
				if i%2 == 0 {
					errs <- read(context.Background(), s)
				} else {
					errs <- write(context.Background(), s, int64(1000*rounds+i+1))
				}
			}()
		}
		for range cap(errs) {
			err := <-errs
			var host *shards.HostError
			switch {
			case err == nil:
				t.Errorf("%s: a call has succeeded", way.name)
			case errors.Is(err, router.ErrLost) && !router.SafeToRetry(err):
			case errors.As(err, &host) && host.Host == "pg-a" && router.SafeToRetry(err):
			default:
				t.Errorf("%s: %v", way.name, err)
			}
		}
		isDown(t, r, 0)
		var down *router.DownError
		if err := write(t.Context(), s, -1); !errors.As(err, &down) || !errors.Is(err, router.ErrHostDown) || down.Since.IsZero() || down.Err == nil {
			t.Errorf("%s: %v", way.name, err)
		} else if !router.SafeToRetry(err) || strings.Contains(err.Error(), password(t, one)) {
			t.Errorf("%s: safe to retry %t, %v", way.name, router.SafeToRetry(err), err)
		}
		if _, err := tx.Exec(t.Context(), `select 1`); err == nil {
			t.Errorf("%s: a transaction goes on", way.name)
		}
		_ = tx.Rollback(t.Context())
		if err := way.restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again(t.Context(), func(ctx context.Context) error { return write(ctx, s, int64(1000*rounds+500)) }); err != nil {
			t.Errorf("%s, and back: %v", way.name, err)
		}
		close(stop)
		others.Wait()
		if got := stats(r, 0); got.Breaker != router.BreakerClosed || got.RoleChanges != 0 || !got.DownSince.IsZero() {
			t.Errorf("%s, and back: %+v", way.name, got)
		}
		if got := stats(r, 1); got.Breaker != router.BreakerClosed {
			t.Errorf("%s: the other host: %+v", way.name, got)
		}
		rounds++
		if out.count(`"host down"`) != rounds || out.count(`"host up"`) != rounds {
			t.Errorf("%s: logged\n%s", way.name, out.String())
		}
	}
}

// TestSlowServerIsNotDown has a statement take twice as long as a host may be silent. The server answers probes.
func TestSlowServerIsNotDown(t *testing.T) {
	t.Parallel()
	var out log
	s := start(t)
	r := open(t, router.Config{Logger: out.logger(), Failover: router.Failover{FailAfter: failSoon}}, s.DSN(database))
	if _, err := shard(t, r, 1).Exec(t.Context(), `select pg_sleep(6)`); err != nil {
		t.Error(err)
	}
	if out.count("level=WARN") > 0 {
		t.Errorf("logged %s", out.String())
	}
	eventually(t, "one session of probes, and that which asks", func() bool {
		return ask[int](t, s.DSN(database), `select count(*) from pg_stat_activity where query like '%pg_walfile_name%'`) <= 2
	})
}

// TestClosedWhileDown closes a router that waits for a primary. The calls end.
func TestClosedWhileDown(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	r := open(t, router.Config{Failover: router.Failover{FailAfter: failSoon}}, dsn(t, p.primary, p.standby))
	s := shard(t, r, 1)
	if err := read(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := p.primary.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	reading := make(chan error, 1)
	go func() { reading <- read(context.Background(), s) }()
	isDown(t, r, 0)
	r.Close()
	if err := <-reading; err == nil || !strings.Contains(err.Error(), "the router is closed") {
		t.Errorf("got %v", err)
	}
}
