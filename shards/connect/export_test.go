package connect

import (
	"context"
	"net"
	"time"
)

// Watch returns a connection that is watched as that of a session, asked about by ask each time nothing has come for limit.
func Watch(conn net.Conn, limit time.Duration, ask func(context.Context) error) net.Conn {
	return (&lookout{limit: limit, ask: ask}).watch(conn)
}

// CheckIdentity is what each connection to a host begins with.
var CheckIdentity = checkIdentity
