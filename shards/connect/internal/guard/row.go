package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// cancelLimit is how long a cancel request may take.
const cancelLimit = time.Second

// errRows says that a server answered with other rows than kiloshard.settings has.
var errRows = errors.New("the server sent other rows than expected: at most one row of kiloshard.settings")

// ReadRow returns the row of the last statement in query, which has the given number of columns, or nil if there is none. It ends the
// connection to a server that sends others, or as much as a login may not have: pgx itself would go on reading.
func ReadRow(ctx context.Context, conn *pgconn.PgConn, query string, columns int) (row [][]byte, err error) {
	end := func(why error) ([][]byte, error) {
		if ctx.Err() != nil { // the statement may wait for a lock
			short, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
			defer cancel()
			_ = conn.CancelRequest(short)
		}
		_ = conn.Conn().Close()
		return nil, why
	}
	conn.Frontend().SendQuery(&pgproto3.Query{String: query})
	if err := conn.Frontend().Flush(); err != nil {
		return end(err)
	}
	var refused error
	for messages, size := 1, 0; ; messages++ {
		message, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return end(err)
		}
		switch m := message.(type) {
		case *pgproto3.DataRow:
			if row != nil || len(m.Values) != columns {
				return end(errRows)
			}
			row = make([][]byte, columns)
			for i, value := range m.Values {
				row[i] = slices.Clone(value)
			}
		case *pgproto3.ErrorResponse:
			refused = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ParameterStatus: // pgx keeps them all
			size += len(m.Name) + len(m.Value)
		case *pgproto3.ReadyForQuery:
			return row, refused
		}
		if messages >= loginMessages || size > loginMessageLimit {
			return end(floodError{messages, size})
		}
	}
}
