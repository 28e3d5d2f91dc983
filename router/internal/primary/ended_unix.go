//go:build unix

package primary

import (
	"errors"
	"syscall"
)

// Ended reports whether the other end has closed the connection, or has sent an error, after which a server closes an idle connection. It
// peeks at what the kernel has received and sends nothing. It reports false for a connection without a socket, such as one that the
// caller's DialFunc wraps, and for an error inside TLS.
func (c *Conn) Ended() bool {
	if c.socket == nil {
		return false
	}
	ended := false
	err := c.socket.Control(func(fd uintptr) {
		var first [1]byte
		n, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err != nil {
			ended = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
		} else {
			ended = n == 0 || first[0] == 'E'
		}
	})
	return err == nil && ended
}
