//go:build !unix

package primary

type peek struct{}

// Ended reports whether the other end has closed the connection, but cannot tell on this system.
func (*Conn) Ended() bool { return false }
