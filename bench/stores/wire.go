package stores

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// wire counts messages: what is sent down a connection until it answers. It may delay the answers.
type wire struct {
	messages atomic.Int64
	delay    atomic.Int64 // from the beginning of a message to its answer, nanoseconds
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: conn, wire: w}, nil
}

type wireConn struct {
	net.Conn
	wire *wire
	sent atomic.Int64 // when the message began that is not answered, 0 for none
}

func (c *wireConn) Write(p []byte) (int, error) {
	if c.sent.CompareAndSwap(0, time.Now().UnixNano()) {
		c.wire.messages.Add(1)
	}
	return c.Conn.Write(p)
}

func (c *wireConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if sent := c.sent.Swap(0); sent > 0 {
			time.Sleep(time.Until(time.Unix(0, sent+c.wire.delay.Load())))
		}
	}
	return n, err
}
