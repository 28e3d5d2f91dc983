// Package port has TCP ports of 127.0.0.1 for servers that are started, killed and started again.
package port

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Port is a TCP port that nobody else gets by Take, in any process, until Release or the end of this process: not while its
// server is down either. The sign of it is the UDP port of the same number, which is held open and not used.
type Port struct {
	Number int
	sign   net.PacketConn
}

// Take returns a port that nobody listens on. It lies below the range from which systems take ports for outgoing
// connections (32768 and up on Linux, 49152 and up elsewhere), so that none of those takes it.
func Take() (*Port, error) {
	const lowest, beyond = 20000, 32000
	for range 100 {
		p := &Port{Number: lowest + rand.IntN(beyond-lowest)}
		var err error
		if p.sign, err = net.ListenPacket("udp4", p.Address()); err != nil {
			continue
		}
		if l, err := net.Listen("tcp4", p.Address()); err == nil {
			return p, l.Close()
		}
		p.Release()
	}
	return nil, errors.New("no free port on 127.0.0.1")
}

// Address returns host and port.
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release lets others have the port. Nil has none.
func (p *Port) Release() {
	if p != nil {
		_ = p.sign.Close()
	}
}
