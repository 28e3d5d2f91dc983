package prove_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// TestErrorsOfThisMachine has connections fail because this machine lacks something. No host is down by it, and the
// connections that there are go on.
func TestErrorsOfThisMachine(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		for name, dsn := range map[string]string{"one address": p.primary.DSN(database), "two addresses": dsn(t, p.primary, p.standby)} {
			if name == "two addresses" && errno != syscall.EMFILE && !pgtest.Full() {
				continue
			}
			t.Run(errno.Error()+", "+name, func(t *testing.T) {
				var lacking atomic.Bool
				var failures atomic.Int64
				var out log
				r := open(t, router.Config{Logger: out.logger(), Failover: router.Failover{FailAfter: failSoon, Wait: failSoon}, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
					dial := cfg.ConnConfig.DialFunc
					cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if lacking.Load() {
							failures.Add(1)
							return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("socket", errno)}
						}
						return dial(ctx, network, addr)
					}
					return nil
				}}, dsn)
				s := shard(t, r, 1)
				tx, err := s.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				lacking.Store(true)
				// The probes of a host with two addresses have a connection too, and must make another one.
				ask[int](t, p.primary.DSN(database), `select count(pg_terminate_backend(pid)) from pg_stat_activity
where pid <> pg_backend_pid() and state = 'idle' and query like '%pg_walfile_name%'`)
				eventually(t, "connections have failed", func() bool {
					err := read(t.Context(), s)
					if !errors.Is(err, errno) || errors.Is(err, router.ErrHostDown) {
						t.Fatalf("got %v", err)
					}
					return failures.Load() > 40
				})
				if _, err := tx.Exec(t.Context(), `select 1`); err != nil {
					t.Error(err)
				}
				if err := tx.Rollback(t.Context()); err != nil {
					t.Error(err)
				}
				if got := stats(r, 0); got.Breaker != router.BreakerClosed || out.count(`"host down"`) > 0 {
					t.Errorf("%+v, logged\n%s", got, out.String())
				}
			})
		}
	}
}

// asking is a handler that asks the router how it does whenever something is logged.
type asking struct {
	slog.Handler
	router *atomic.Pointer[router.Router]
	asked  *atomic.Int64
}

func (h asking) Handle(ctx context.Context, record slog.Record) error {
	if r := h.router.Load(); r != nil {
		_, _, _ = r.Stats(), r.ReadStats(), r.MapState()
		h.asked.Add(1)
	}
	return h.Handler.Handle(ctx, record)
}

func (h asking) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// TestLoggerAsksTheRouter has the logger ask for statistics while a host goes down and comes up, a primary is found, and
// the map changes. No lock is held meanwhile.
func TestLoggerAsksTheRouter(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	var out log
	var opened atomic.Pointer[router.Router]
	var asked atomic.Int64
	handler := asking{out.logger().Handler(), &opened, &asked}
	r := open(t, router.Config{Logger: slog.New(handler), Failover: router.Failover{NoWait: true}}, dsn(t, p.primary, p.standby))
	opened.Store(r)
	s := shard(t, r, 1)
	if err := again(t.Context(), func(ctx context.Context) error { return read(ctx, s) }); err != nil {
		t.Fatal(err)
	}
	step := func(what, logged string, do func() error) {
		t.Helper()
		done := make(chan error, 1)
		go func() {
			err := do()
			for err == nil && out.count(logged) == 0 {
				_ = read(context.Background(), s) // has the host asked
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		case <-time.After(time.Minute):
			panic(what + ": the router hangs") // closing it would hang too
		}
	}
	step("a map", `"map changed"`, func() error {
		config := r.Map().Config()
		m, err := config.Map()
		return errors.Join(err, r.SetMap(m))
	})
	step("a dead host", `"host down"`, func() error { return p.primary.Kill(t.Context()) })
	step("a new primary", `"primary changed"`, func() error { promote(t, p.standby); return nil })
	step("a host that is back", `"host up"`, func() error { return nil })
	if asked.Load() < 4 {
		t.Errorf("the router was asked %d times", asked.Load())
	}
}
