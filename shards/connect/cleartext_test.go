package connect_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// asker is a server that asks for the password in clear text, and keeps what it is sent.
type asker struct {
	net.Listener
	sent chan string
}

func startAsker(t *testing.T) *asker {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{Listener: listener, sent: make(chan string, 10)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { a.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return a
}

func (a *asker) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(conn)
	var length uint32
	if binary.Read(in, binary.BigEndian, &length) != nil || length > 10_000 {
		return
	}
	_, _ = io.CopyN(io.Discard, in, int64(length)-4) // the startup message
	_, _ = conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3})
	header := make([]byte, 5)
	if _, err := io.ReadFull(in, header); err != nil { // it left without a word
		a.sent <- ""
		return
	}
	sent := make([]byte, min(10_000, binary.BigEndian.Uint32(header[1:])-4))
	_, _ = io.ReadFull(in, sent)
	a.sent <- string(sent)
}

// TestAServerThatAsksForThePassword is sent none, unless the DSN allows it.
func TestAServerThatAsksForThePassword(t *testing.T) {
	t.Parallel()
	const password = "never-in-clear-text"
	for _, test := range []struct {
		name, query string
		sent        bool
	}{
		{"by default", "?sslmode=disable", false},
		{"allowed", "?sslmode=disable&require_auth=password", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := startAsker(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			host := shards.Host{Name: "pg-a", DSN: "postgres://app:" + password + "@" + a.Addr().String() + "/app" + test.query}
			_, err := connect.Open(ctx, host, nil)
			if err == nil || strings.Contains(err.Error(), password) {
				t.Fatalf("got %v", err)
			}
			if !test.sent && !strings.Contains(err.Error(), "the server asks for the password itself") {
				t.Errorf("got %v, expected to be told", err)
			}
			if sent := <-a.sent; strings.Contains(sent, password) != test.sent {
				t.Errorf("the server was sent %q", sent)
			}
		})
	}
}
