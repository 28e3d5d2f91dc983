package localpg

import (
	"errors"
	"math/rand/v2"
	"net"
)

// freePort returns a TCP port of the loopback address that nobody listens on now. It lies below the range from which
// systems take ports for outgoing connections (32768 and up on Linux, 49152 and up elsewhere), so that none of those
// takes it while the server is down between a kill and a restart.
func freePort() (int, error) {
	const lowest, beyond = 20000, 32000
	for range 100 {
		port := lowest + rand.IntN(beyond-lowest)
		l, err := net.Listen("tcp4", loopback(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}
