package stores

import (
	"context"
	"net"
	"sync/atomic"
	"time"
)

// counter counts the messages of connections. A message is everything that is sent on a connection before it answers.
type counter struct {
	messages atomic.Int64
	delay    atomic.Int64 // from the beginning of a message to its answer at least, in nanoseconds
}

func (c *counter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn, counter: c}, nil
}

type countedConn struct {
	net.Conn
	counter *counter
	sent    atomic.Int64 // when the message began that has no answer yet, in nanoseconds since 1970; 0 for none
}

func (c *countedConn) Write(p []byte) (int, error) {
	if c.sent.CompareAndSwap(0, time.Now().UnixNano()) {
		c.counter.messages.Add(1)
	}
	return c.Conn.Write(p)
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if sent := c.sent.Swap(0); sent > 0 {
			time.Sleep(time.Until(time.Unix(0, sent+c.counter.delay.Load())))
		}
	}
	return n, err
}
