package localpg

import (
	"context"
	"io"
	"net"
	"sync"
)

// Relay is an address that forwards each connection to a server, which is chosen when the connection is made.
type Relay struct {
	listen net.Listener
	stop   context.CancelFunc
	all    sync.WaitGroup
}

// StartRelay listens on 127.0.0.1. to returns the address of the server for the next connection. Calls of to do not overlap.
func StartRelay(to func() string) (*Relay, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &Relay{listen: listen, stop: stop}
	r.all.Go(func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			address := to()
			r.all.Go(func() { forward(ctx, conn, address) })
		}
	})
	return r, nil
}

// Address is host:port.
func (r *Relay) Address() string { return r.listen.Addr().String() }

// Stop closes all connections.
func (r *Relay) Stop() {
	_ = r.listen.Close() // open connections remain
	r.stop()
	r.all.Wait()
}

// forward copies between a connection and an address until either side ends.
func forward(ctx context.Context, conn net.Conn, to string) {
	defer conn.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _, _ = conn.Close(), server.Close() })()
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(server, conn); _ = server.Close() })
	both.Go(func() { _, _ = io.Copy(conn, server); _ = conn.Close() })
	both.Wait()
}
