package prove_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// setClock is a server whose shards' clock is this machine's plus an offset, which they read each time from stops.clock.
// Postgres itself goes by the machine's: nothing waits for a clock that is set.
type setClock struct {
	*clock
	conn *pgx.Conn
}

// startSetClock starts a server with a clock that can be set.
func startSetClock(t *testing.T, s subject) (*localpg.Server, *setClock) {
	t.Helper()
	server := startChanged(t, s, localpg.Config{}, func(script string) string { return withStops(t, false, script) })
	c := &setClock{clock: newClock(), conn: connect(t, server.DSN(database))}
	c.step(t, 0)
	return server, c
}

// step sets the offset, and makes sure that the clock has stepped.
func (c *setClock) step(t *testing.T, offset time.Duration) {
	t.Helper()
	err := c.set(offset, func() error {
		_, err := c.conn.Exec(t.Context(), "select setval('stops.clock', $1)", offset.Microseconds())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const slack = time.Millisecond // what is less than a microsecond is cut off
	before := time.Now().Round(0)
	var server time.Time
	if err := c.conn.QueryRow(t.Context(), "select stops.clock_timestamp()").Scan(&server); err != nil {
		t.Fatal(err)
	}
	after := time.Now().Round(0)
	if server.Before(before.Add(offset-slack)) || server.After(after.Add(offset+slack)) {
		t.Fatalf("the clock is off by %v, not by %v", server.Sub(before), offset)
	}
}

// drift moves the offset to another one, a millisecond at a time.
func (c *setClock) drift(t *testing.T, from, to, length time.Duration) {
	t.Helper()
	steps := (to - from).Abs() / time.Millisecond
	for n := range steps {
		c.step(t, from+(to-from)*(n+1)/steps)
		loadFor(t, length/steps)
	}
}
