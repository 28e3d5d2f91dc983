package connect

import (
	"context"
	"net"
	"strings"
	"time"
)

// Watch returns a connection that is watched as that of a session, asked about by ask each time nothing has come for limit.
func Watch(conn net.Conn, limit time.Duration, ask func(context.Context) error) net.Conn {
	return (&lookout{limit: limit, ask: ask}).watch(conn)
}

// CheckIdentity is what each connection to a host begins with.
var CheckIdentity = checkIdentity

// WaitBriefly has a session that has no lock_timeout wait for a lock of kiloshard.settings for a second. It must be called before all tests.
func WaitBriefly() {
	if !strings.Contains(readIdentity, "'30s'") {
		panic("kiloshard.settings is read without a limit of 30 s")
	}
	readIdentity = strings.Replace(readIdentity, "'30s'", "'1s'", 1)
}
