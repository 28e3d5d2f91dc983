package shards

import (
	"strconv"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// place is one of the addresses that a DSN names.
type place struct {
	host string // a name, an IP, or the directory of a Unix socket
	port uint16
}

// At returns the host as if its DSN named only this address, for credentials that are valid for one address. address is
// a name, an IP, or the directory of a Unix socket.
func (h Host) At(address string, port uint16) Host {
	h.at = &place{address, port}
	return h
}

// in returns the DSN with this address instead of its own.
func (p *place) in(text string) string {
	if p == nil {
		return text
	}
	return dsn.With(text, "host", p.host, "port", strconv.Itoa(int(p.port)))
}
