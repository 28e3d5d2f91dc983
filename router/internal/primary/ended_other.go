//go:build !linux

package primary

// Ended reports whether the other end has closed the connection, which this system does not say without reading.
func (*Conn) Ended() bool { return false }
