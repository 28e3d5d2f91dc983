package prove_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// balancer passes connections on, and ends all of them at once, as a load balancer does that has had enough of idle ones.
type balancer struct {
	net.Listener
	to string

	mu   sync.Mutex
	open []net.Conn
}

func (b *balancer) run() {
	for {
		client, err := b.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", b.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		b.mu.Lock()
		b.open = append(b.open, client, server)
		b.mu.Unlock()
		for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
			go func() {
				_, _ = io.Copy(way[0], way[1])
				_ = way[0].Close()
			}()
		}
	}
}

func (b *balancer) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.open {
		_ = conn.Close()
	}
	b.open = nil
}

// TestIdleConnectionsEndAtOnce has a balancer end all twenty connections of a host while they are idle. No write that comes next
// is sent on one of them, so each is done, and none may have run without an answer.
func TestIdleConnectionsEndAtOnce(t *testing.T) {
	t.Parallel()
	const connections = 20
	u, err := url.Parse(start(t).DSN(database))
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{Listener: listener, to: u.Host}
	go b.run()
	defer func() {
		_ = b.Close()
		b.end()
	}()
	u.Host = listener.Addr().String()
	r := open(t, router.Config{Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		cfg.MaxConns = connections
		return nil
	}}, u.String())
	s := shard(t, r, 1)
	var wait sync.WaitGroup
	began, end := make(chan struct{}), make(chan struct{})
	for range connections { // each takes a connection of its own
		wait.Go(func() {
			tx, err := s.Begin(t.Context())
			began <- struct{}{}
			<-end
			if err == nil {
				err = tx.Rollback(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range connections {
		<-began
	}
	close(end)
	wait.Wait()
	b.end()
	for id := range int64(connections) {
		if err := write(t.Context(), s, id+1); err != nil {
			t.Errorf("write %d: %v", id+1, err)
		}
	}
}
