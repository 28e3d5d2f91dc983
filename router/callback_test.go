package router_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// logFunc is a handler that calls a function with the message of each record.
type logFunc func(message string)

func (f logFunc) Enabled(context.Context, slog.Level) bool { return true }
func (f logFunc) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f logFunc) WithGroup(string) slog.Handler            { return f }
func (f logFunc) Handle(_ context.Context, r slog.Record) error {
	f(r.Message)
	return nil
}

// version returns a router's map as another version, in which pg-b has another name.
func version(t *testing.T, b *testBundle, n int, second string) *shards.Map {
	t.Helper()
	c := b.Map().Config()
	c.Version = n
	c.Hosts = append([]shards.Host(nil), c.Hosts...)
	c.Placement = append([]shards.Placement(nil), c.Placement...)
	c.Hosts[1].Name, c.Placement[1].Host = second, second
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A logger and Config.Pool may call every method of the router while it opens a host for a newer map, even SetMap.
func TestCallbacksMayCallTheRouter(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{hosts: 2})
	for _, from := range []string{"logger", "Pool"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			var b *testBundle
			var newer, newest *shards.Map
			var pools atomic.Int32
			called := false
			callback := func() {
				if newer == nil || called { // New has no router yet
					return
				}
				called = true
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if stats := b.Stats(); len(stats) != 2 {
					t.Errorf("got the stats of %d hosts", len(stats))
				}
				for _, ping := range b.PingEach(ctx) {
					if ping.Err != nil {
						t.Error(ping.Err)
					}
				}
				if s, err := b.ForKey(ctx, shards.NumberKey(63)); err != nil || s.Number() != 63 {
					t.Errorf("got %v, %v", s, err)
				}
				if state := b.MapState(); state.Version != 0 {
					t.Errorf("the router uses map version %d", state.Version)
				}
				if err := b.SetMap(newest); err != nil {
					t.Error(err)
				}
			}
			opts := options{on: db, hosts: 2, pool: func(*pgxpool.Config) {
				pools.Add(1)
				if from == "Pool" {
					callback()
				}
			}, logger: slog.New(logFunc(func(message string) {
				if from == "logger" && message == "host opened" {
					callback()
				}
			}))}
			b, _ = setup(t, opts)
			newer, newest = version(t, b, 2, "pg-new"), version(t, b, 3, "pg-newest")
			pools.Store(0)

			result := make(chan error, 1)
			go func() { result <- b.SetMap(newer) }()
			select {
			case err := <-result:
				var change *shards.ChangeError // version 3 is in use by then
				if !errors.As(err, &change) {
					t.Errorf("got %v", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("SetMap did not return")
			}
			if !called || b.Map() != newest || pools.Load() != 2 {
				t.Errorf("called %v, map version %d, %d pools", called, b.Map().Version(), pools.Load())
			}
		})
	}
}

// Close while Config.Pool runs for a newer map leaves nothing open.
func TestCloseWhileSetMapOpens(t *testing.T) {
	t.Parallel()
	db, _ := setup(t, options{hosts: 2})
	entered, goOn := make(chan struct{}), make(chan struct{})
	armed, opened, closed := false, atomic.Int32{}, atomic.Int32{}
	b, _ := setup(t, options{on: db, hosts: 2, pool: func(*pgxpool.Config) {
		if armed {
			close(entered)
			<-goOn
		}
	}, logger: slog.New(logFunc(func(message string) {
		switch message {
		case "host opened":
			opened.Add(1)
		case "host closed":
			closed.Add(1)
		}
	}))})
	armed = true
	result := make(chan error, 1)
	go func() { result <- b.SetMap(version(t, b, 2, "pg-new")) }()
	<-entered
	b.Router.Close()
	close(goOn)
	if err := <-result; err == nil || b.Map().Version() != 0 {
		t.Errorf("got %v, map version %d", err, b.Map().Version())
	}
	if opened.Load() != 3 || closed.Load() != 3 {
		t.Errorf("%d hosts opened, %d closed", opened.Load(), closed.Load())
	}
}

// A replica is opened when it is wanted first. The logger and Config.Pool may read from the shard, and change the map, meanwhile.
func TestCallbacksOfReplicas(t *testing.T) {
	t.Parallel()
	var b *readBundle
	var calls atomic.Int32
	ready, results := make(chan struct{}), make(chan error, 4)
	callback := func() {
		select {
		case <-ready:
		default:
			return // New makes the primary's pool
		}
		if calls.Add(1) > 2 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s := b.shard(t, 0)
		results <- s.ReadOnly(router.Reads{}).QueryRow(ctx, `select 1`).Scan(new(int))
		c := b.Map().Config()
		c.Version++
		m, err := c.Map()
		if err == nil {
			err = b.SetMap(m)
		}
		results <- err
	}
	b, ctx := withReplicas(t, options{
		pool:   func(*pgxpool.Config) { callback() },
		logger: slog.New(logFunc(func(message string) { callback() })),
	}, theReplicated(t).harmless[0].DSN("app"))
	close(ready)
	b.awaitAll(ctx, t)
	for range 4 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
