package network

import (
	"net"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// Redirect returns the DSN with another address and database; an empty string keeps the old one.
func Redirect(text, address, database string) string {
	if host, port, err := net.SplitHostPort(address); err == nil {
		text = dsn.With(text, "host", host, "port", port)
	}
	if database != "" {
		text = dsn.With(text, "dbname", database)
	}
	return text
}
