package session

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/primary"
)

// Session is what the router knows of one connection. Whoever holds the connection may use it, nobody else.
type Session struct {
	host       *Host
	Conn       *pgx.Conn
	wire       *primary.Conn // nil if it is not known
	leaving    *leaving      // nil if pgx does it
	statements *statements
	encoder    pgx.ExtendedQueryBuilder

	Server        string                                  // of a replica, which the session is on; empty if unknown
	ownStatements map[string]*pgconn.StatementDescription // the router's own, by name; nil where nothing is prepared

	pooled bool   // a pooler may give each transaction to another server session
	base   string // the path that the session has between messages: see entryQuery
	Left   bool   // something of a caller's may be left on it
}

// Broken tells whether the connection is closed, be it that pgx does not know it yet.
func (s *Session) Broken() bool {
	return s.Conn.IsClosed() || s.wire != nil && s.wire.Cut() || s.leaving != nil && s.leaving.late
}
