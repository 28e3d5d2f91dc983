package connect_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// throughRelay returns a host that is reached by way of a relay, and what has new connections lead to where nobody answers, and cuts
// those that are there without a word.
func throughRelay(t *testing.T) (shards.Host, func()) {
	t.Helper()
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // whose backlog accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	var cut atomic.Bool
	real := u.Host
	relay, err := localpg.StartRelay(func() string {
		if cut.Load() {
			return silent.Addr().String()
		}
		return real
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(relay.Stop)
	u.Host = relay.Address()
	u.RawQuery = "sslmode=disable&connect_timeout=1"
	return hostOf(u.String()), func() { cut.Store(true) }
}

// A statement that runs for long is none of a host's that is silent.
func TestLongStatement(t *testing.T) {
	t.Parallel()
	host, _ := throughRelay(t)
	conn, err := connect.Open(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var slept string
	if err := conn.QueryRow(t.Context(), "select pg_sleep(5)::text").Scan(&slept); err != nil {
		t.Error(err)
	}
}

// A host that lets nobody in any more ends the statement that waits for it.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	host, cut := throughRelay(t)
	conn, err := connect.OpenPlain(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	cut()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := conn.Exec(ctx, "select pg_sleep(1000)").ReadAll(); !errors.Is(err, connect.ErrSilent) {
		t.Errorf("got %v, expected that the host is silent", err)
	}
}

// An answer that got lost on its way ends the statement, since the server says that the session is idle.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	var lost atomic.Bool
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	real := u.Host
	all.Go(func() {
		for first := true; ; first = false {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", real)
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Go(func() { _, _ = io.Copy(to, client); _ = to.Close() })
			all.Go(func() {
				defer client.Close()
				for text := make([]byte, 4096); ; {
					n, err := to.Read(text)
					if err != nil {
						return
					}
					if !first || !lost.Load() {
						_, _ = client.Write(text[:n])
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	u.Host, u.RawQuery = listener.Addr().String(), "sslmode=disable&connect_timeout=1"
	conn, err := connect.OpenPlain(t.Context(), hostOf(u.String()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	lost.Store(true)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := conn.Exec(ctx, "select 1").ReadAll(); !errors.Is(err, connect.ErrSilent) {
		t.Errorf("got %v after %s, expected that the answer was lost", err, time.Since(begun))
	}
}
