package prove_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// way is a statement that brings IDs, and what comes before it.
type way struct {
	query string
	args  func() []any
	pause func() time.Duration // nil for none
}

// ways returns what a session on a shard does in turn.
func ways(number shards.Number, session, bulk int) []way {
	in := schema(number)
	none := func() []any { return nil }
	one := way{query: "select " + in + ".next_id()", args: none}
	row := way{
		query: "insert into " + in + ".photos (session) values ($1) returning id",
		args:  func() []any { return []any{session} },
	}
	rows := way{
		query: "insert into " + in + ".photos (session) select $1 from generate_series(1, $2::int) returning id",
		args:  func() []any { return []any{session, 1 + rand.IntN(bulk)} },
	}
	many := way{
		query: "select " + in + ".next_ids($1)",
		args:  func() []any { return []any{1 + rand.IntN(bulk)} },
	}
	switch number {
	case idle, another:
		one.pause, row.pause, many.pause = untilBeat, untilBeat, untilBeat
		return []way{one, one, row, one, many}
	case lively:
		one.pause, many.pause = shortly, shortly
		return []way{row, one, rows, many}
	}
	all := []way{one, row, rows, one, many, row}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// beat is long enough for a shard to fall so far behind the clock that catch_up has to set its sequence.
const beat = 50 * time.Millisecond

// untilBeat waits for a moment at which all wait for that do.
func untilBeat() time.Duration { return beat - time.Duration(time.Now().UnixNano()%int64(beat)) }

// shortly waits for less or more than the window around the clock.
func shortly() time.Duration { return time.Duration(rand.Int64N(int64(beat))) }

// receive runs the statement and leaves the IDs of the rows that came in w.ids.
func (w *worker) receive(ctx context.Context, conn *pgx.Conn, way way) error {
	w.ids = w.ids[:0]
	rows, err := conn.Query(ctx, way.query, way.args()...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		w.ids = append(w.ids, shards.ID(binary.BigEndian.Uint64(rows.RawValues()[0])))
	}
	return rows.Err()
}

// The SQLSTATEs of calls that were ended from outside: query_canceled, admin_shutdown, crash_shutdown,
// cannot_connect_now.
var fromOutside = []string{"57014", "57P01", "57P02", "57P03"}

// mayFail says whether an error is of the kind that the faults bring about.
func (w *worker) mayFail(err error) bool {
	if !w.load.cfg.breaks {
		return false
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		w.load.interrupted(e)
		return slices.Contains(fromOutside, e.Code)
	}
	return w.conn.Load() == nil || errors.Is(err, context.Canceled) // the connection is gone, or the client gave up
}
