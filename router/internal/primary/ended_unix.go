//go:build unix

package primary

import (
	"errors"
	"syscall"
)

// peek looks at what the kernel has received on a socket.
type peek struct {
	look  func(fd uintptr) // made once: it is called before each statement
	ended bool
}

// Ended reports whether the other end has closed the connection, or has sent an error, after which a server closes an idle connection. It
// peeks at what the kernel has received and sends nothing. It reports false for a connection without a socket, such as one that the
// caller's DialFunc wraps, and for an error inside TLS. One goroutine at a time may call it.
func (c *Conn) Ended() bool {
	if c.socket == nil {
		return false
	}
	p := &c.peek
	if p.look == nil {
		p.look = func(fd uintptr) {
			var first [1]byte
			n, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if err != nil {
				p.ended = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
			} else {
				p.ended = n == 0 || first[0] == 'E'
			}
		}
	}
	return c.socket.Control(p.look) == nil && p.ended
}
