package prove_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/localpg"
)

// fakeTime is a server whose clock is this machine's plus an offset, by libfaketime, which reads the offset from a file
// each time that the server reads the clock.
type fakeTime struct {
	*clock
	file string
	conn *pgx.Conn
}

// startFakeTime starts a server with a clock that can be set.
func startFakeTime(t *testing.T, s subject) (*localpg.Server, *fakeTime) {
	t.Helper()
	library := libfaketime(t)
	f := &fakeTime{clock: newClock(), file: filepath.Join(sharedDir(t), "offset")}
	if err := f.write(0); err != nil {
		t.Fatal(err)
	}
	server := start(t, s, localpg.Config{Env: []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + f.file, "FAKETIME_NO_CACHE=1",
		"FAKETIME_DONT_FAKE_MONOTONIC=1", // by which Postgres waits
	}})
	f.conn = connect(t, server.DSN(database))
	f.step(t, 0)
	return server, f
}

// write replaces the file in one step, so that nobody reads half of it.
func (f *fakeTime) write(offset time.Duration) error {
	next := f.file + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+.6f\n", offset.Seconds()), 0o644); err != nil {
		return err
	}
	return os.Rename(next, f.file)
}

// step sets the offset, and makes sure that the server's clock has stepped.
func (f *fakeTime) step(t *testing.T, offset time.Duration) {
	t.Helper()
	if err := f.set(offset, func() error { return f.write(offset) }); err != nil {
		t.Fatal(err)
	}
	const slack = time.Millisecond // libfaketime cuts off what is less than a microsecond
	before := time.Now().Round(0)
	var server time.Time
	if err := f.conn.QueryRow(t.Context(), "select clock_timestamp()").Scan(&server); err != nil {
		t.Fatal(err)
	}
	after := time.Now().Round(0)
	if server.Before(before.Add(offset-slack)) || server.After(after.Add(offset+slack)) {
		t.Fatalf("the server's clock is off by %v, not by %v: libfaketime has no effect", server.Sub(before), offset)
	}
}

// drift moves the offset to another one, a millisecond at a time.
func (f *fakeTime) drift(t *testing.T, from, to, length time.Duration) {
	t.Helper()
	steps := (to - from).Abs() / time.Millisecond
	for n := range steps {
		f.step(t, from+(to-from)*(n+1)/steps)
		loadFor(t, length/steps)
	}
}
