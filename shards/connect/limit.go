package connect

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// loginMessageLimit is the largest message that a server may send before its identity is checked, in bytes. The largest that
	// Kiloshard expects is a strategy of 8,192 ranges. It is also the most that all messages of a login may have.
	loginMessageLimit = 4 << 20
	// messageLimit is Postgres's own limit.
	messageLimit = 1<<30 - 2
)

// errRows says that a server answered with other rows than kiloshard.settings has.
var errRows = errors.New("the server sent other rows than expected: at most one row of kiloshard.settings")

// limitLogin has a config's connections guard their login, and refuse messages over loginMessageLimit until [endLimit].
func limitLogin(c *pgconn.Config) {
	build, turn := c.BuildFrontend, turn{taken: make(chan struct{}, 1), limit: c.ConnectTimeout}
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		f := build(&guard{Reader: r, turn: turn, want: headLength}, w)
		f.SetMaxBodyLen(loginMessageLimit)
		return f
	}
}

// endLimit allows a connection messages of any size.
func endLimit(conn *pgconn.PgConn) { conn.Frontend().SetMaxBodyLen(messageLimit) }

// readRow returns the row of the last statement in query, which has the given number of columns, or nil if there is none. It ends the
// connection to a server that sends others.
func readRow(ctx context.Context, conn *pgconn.PgConn, query string, columns int) (row [][]byte, err error) {
	results := conn.Exec(ctx, query)
	for results.NextResult() {
		for reader := results.ResultReader(); reader.NextRow(); {
			if row != nil || len(reader.Values()) != columns {
				_ = conn.Conn().Close()
				_ = results.Close()
				return nil, errRows
			}
			row = make([][]byte, columns)
			for i, value := range reader.Values() {
				row[i] = slices.Clone(value)
			}
		}
	}
	return row, results.Close()
}
