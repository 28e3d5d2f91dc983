package primary

import (
	"context"
	"net"
)

// DialWhileItFalls dials an address that is found down meanwhile because of why, and up again before the dialling has
// ended if so said. The inner dialling succeeds or fails.
func DialWhileItFalls(ctx context.Context, why error, upAgain, succeeds bool) (net.Conn, error) {
	a := newAddress("127.0.0.1", 1)
	return a.dial(func(ctx context.Context, _, _ string) (net.Conn, error) {
		a.bar(why)
		if upAgain {
			a.open()
		}
		if !succeeds {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn, other := net.Pipe()
		_ = other.Close()
		return conn, nil
	})(ctx, "tcp", a.String())
}

// OfThisMachine reports whether no connection was made because this machine lacks something.
func OfThisMachine(err error) bool { return ofThisMachine(err) }
