package prove_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

// TestDumpedAndRestoredShard dumps the hot shard in mid-load, lets the load go on, drops the shard, restores it into
// another database, and goes on there.
func TestDumpedAndRestoredShard(t *testing.T) {
	t.Parallel()
	const sessions = 24
	server := start(t, chosen, localpg.Config{})
	elsewhere, err := server.CreateDatabase(t.Context(), "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	do(t, elsewhere, chosen.database())
	h := newHistory(newClock(), limitsFor(sessions))
	staying := startLoad(t, h, loadConfig{
		dsn: targetOn(server).dsn, sessions: sessions / 2, numbers: []shards.Number{lively, idle, another},
	})
	moving := startLoad(t, h, loadConfig{
		dsn: targetOn(server).dsn, sessions: sessions / 2, numbers: []shards.Number{hot},
	})
	loadFor(t, form(500*time.Millisecond, 4*time.Second))

	moving.fault("the dump")
	dump := filepath.Join(t.TempDir(), "dump")
	run(t, server, "pg_dump", "--format=custom", "--schema="+schema(hot), "--file="+dump, "--dbname="+database)
	moving.awaitMore()
	moving.stop()
	moving.close()
	do(t, server.DSN(database), "drop schema "+schema(hot)+" cascade")
	run(t, server, "pg_restore", "--exit-on-error", "--dbname=elsewhere", dump)
	if h.unknownTo(t, chosen, elsewhere, hot) == 0 && chosen == kiloshard {
		t.Error("the dump has all IDs: it was not taken in mid-load, so the test proves nothing")
	}

	staying.fault("the restore into another database")
	moved := startLoad(t, h, loadConfig{
		dsn: func() string { return elsewhere }, sessions: sessions / 2, numbers: []shards.Number{hot},
	})
	loadFor(t, form(500*time.Millisecond, 4*time.Second))
	moved.stop()
	staying.stop()
	h.check(t)
}

// run runs one of the server's client programs on it.
func run(t *testing.T, server *localpg.Server, program string, args ...string) {
	t.Helper()
	u, err := url.Parse(server.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	bin := ask[string](t, server.DSN("postgres"), "select setting from pg_config where name = 'BINDIR'")
	path := filepath.Join(bin, program)
	if _, err := os.Stat(path); err != nil {
		missing(t, err.Error()+": install Debian's package postgresql")
	}
	password, _ := u.User.Password()
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{
		"LC_ALL=C", "PGHOST=" + u.Hostname(), "PGPORT=" + u.Port(), "PGUSER=" + u.User.Username(), "PGPASSWORD=" + password,
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}
