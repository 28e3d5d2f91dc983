//go:build unix

package primary

import (
	"errors"
	"syscall"
)

// Ended reports whether the other end has closed the connection, or has sent an error, which on an idle connection is its last
// word. It asks the kernel, reads nothing away, and sends nothing. A connection that the caller's DialFunc wraps counts as open,
// and so does one with TLS until its end itself has come.
func (c *Conn) Ended() bool {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		var first [1]byte
		n, _, err := syscall.Recvfrom(int(fd), first[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err != nil:
			ended = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR)
		default:
			ended = n == 0 || first[0] == 'E'
		}
	})
	return err == nil && ended
}
