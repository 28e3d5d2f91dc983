package primary

import (
	"context"
	"net"
)

// DialWhileItGoesDown dials an address that goes down during the dial, because of why. With upAgain it comes up before the
// dial ends. succeeds is the result of the inner dial.
func DialWhileItGoesDown(ctx context.Context, why error, upAgain, succeeds bool) (net.Conn, error) {
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

// IsLocal reports whether a dial failed because this machine lacks resources.
func IsLocal(err error) bool { return isLocal(err) }
