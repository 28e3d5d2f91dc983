package session

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/primary"
)

// Session is the state that the router keeps of one connection. Only the holder of the connection may use it.
type Session struct {
	host       *Host
	Conn       *pgx.Conn
	wire       *primary.Conn // nil if it is not known
	leaving    *leaving      // nil if pgx does it
	statements *statements
	encoder    pgx.ExtendedQueryBuilder

	Server        string                                  // of a replica, which the session is on; empty if unknown
	ownStatements map[string]*pgconn.StatementDescription // the router's own, by name; nil where nothing is prepared

	oids map[string]string // of the schemas of shards that a first entry has found, by name; none behind a pooler

	endsUnprepared bool // a statement has deallocated the one that ends its transaction

	pid, started string // of the server's process: its number, and the Unix time in seconds at which it began

	pooled bool   // a pooler may give each transaction to another server session
	base   string // the path that the session has between messages: see entryQuery
	Left   bool   // something of a caller's may be left on it
}

// Ended reports whether the other end has closed the connection. It sends nothing, and is for a connection that was idle.
func (s *Session) Ended() bool { return s.wire != nil && s.wire.Ended() }

// Broken reports whether the connection is closed, even if pgx does not know it yet.
func (s *Session) Broken() bool {
	return s.Conn.IsClosed() || s.wire != nil && s.wire.Cut() || s.leaving != nil && s.leaving.late
}
