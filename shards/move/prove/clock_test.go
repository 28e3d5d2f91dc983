package prove_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// A shard moves to a host whose clock is 5 s behind the source's, and back: no call fails, and its IDs go on rising.
func TestClockBehind(t *testing.T) {
	t.Parallel()
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if len(found) == 0 {
		const missing = "libfaketime is missing: install Debian's package libfaketime"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	c := start(t, map[string]localpg.Config{"pg-b": {Env: []string{
		"LD_PRELOAD=" + found[0], "FAKETIME=-5s", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DISABLE_SHM=1",
	}}})
	behind := c.text("pg-b", `select (clock_timestamp() + interval '4 s') at time zone 'utc'`)
	if now := c.text("pg-a", `select clock_timestamp() at time zone 'utc'`); behind >= now {
		t.Fatalf("the clock of pg-b was not 5 s behind: 4 s after its %s it is %s: the test proves nothing", behind, now)
	}
	w := c.callers()
	for range 2 {
		_, to := c.home()
		c.done(moves)
		last := c.text(to, `select max(id) from shard_00001.photos`)
		if id := c.text(to, `select shard_00001.next_id()`); id <= last {
			t.Errorf("ID %s after %s", id, last)
		}
		w.some()
		c.whole(to)
		w.check(to)
		c.clean()
	}
}
