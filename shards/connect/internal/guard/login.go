// Package guard bounds what a server may cost a client before its identity is known: what it computes, and what it keeps in memory.
package guard

import (
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// messageLimit is Postgres's own limit.
const messageLimit = 1<<30 - 2

// Login has a config's connections guard their login, and refuse messages over 4 MiB until [End].
func Login(c *pgconn.Config) {
	build, turn, suspects := c.BuildFrontend, turn{taken: make(chan struct{}, 1), limit: c.ConnectTimeout}, &suspects{}
	suspects.watch(c)
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		g := &guard{from: r, to: w, turn: turn, want: headLength, report: func(error) {}}
		if conn, ok := w.(net.Conn); ok {
			g.report = func(refused error) { suspects.add(conn.RemoteAddr().String(), refused) }
		}
		f := build(g, g)
		f.SetMaxBodyLen(loginMessageLimit)
		return f
	}
}

// End allows a connection messages of any size.
func End(conn *pgconn.PgConn) { conn.Frontend().SetMaxBodyLen(messageLimit) }
