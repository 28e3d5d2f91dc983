package primary

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Ended reports whether the other end has closed the connection. It asks the kernel, and nothing is sent. A connection
// that the caller's DialFunc wraps has no file descriptor, and counts as open.
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
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // descriptors are small
		n, err := unix.Poll(polled, 0)
		ended = err == nil && n > 0 // also POLLERR and POLLHUP, which need not be asked for
	})
	return err == nil && ended
}
