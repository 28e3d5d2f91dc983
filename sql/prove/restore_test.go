package prove_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// TestRestoreToTheRecentPast restores a server, from a base backup and the WAL archive, to what it was ten seconds ago,
// and goes on there.
func TestRestoreToTheRecentPast(t *testing.T) {
	t.Parallel()
	const sessions = 24
	ago := form(2*time.Second, 10*time.Second)
	archive := sharedDir(t)
	server := start(t, chosen, localpg.Config{Settings: map[string]string{
		"archive_mode":    "on",
		"archive_command": fmt.Sprintf("cp %%p %[1]s/part && mv %[1]s/part %[1]s/%%f", archive), // whole or not at all
	}})
	h := newHistory(newClock(), limitsFor(sessions))
	target := targetOn(server)
	l := startLoad(t, h, loadConfig{dsn: target.dsn, sessions: sessions, breaks: true})
	loadFor(t, time.Second/2)
	l.fault("the base backup")
	backup, err := server.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loadFor(t, form(500*time.Millisecond, 2*time.Second))
	moment := ask[string](t, server.DSN(database), "select clock_timestamp()::text")
	loadFor(t, ago)
	l.awaitMore()

	// Some WAL from after the target has to be in the archive: only a later commit tells that the target is reached.
	segment := ask[string](t, server.DSN(database), "select pg_walfile_name(pg_switch_wal())")
	eventually(t, "the WAL is archived", func() bool {
		_, err := os.Stat(filepath.Join(archive, segment))
		return err == nil
	})
	l.fault("the restore to %v ago", ago)
	if err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	restored, err := backup.Restore(t.Context(), map[string]string{
		"restore_command": "cp " + archive + "/%f %p", "archive_mode": "off",
		"recovery_target_time": moment, "recovery_target_action": "promote",
	})
	stopLater(t, restored, err)
	eventually(t, "the recovery is done", func() bool {
		return !ask[bool](t, restored.DSN(database), "select pg_is_in_recovery()")
	})
	if h.unknownTo(t, chosen, restored.DSN(database), numbers...) == 0 && chosen == kiloshard {
		t.Error("the restored server has all IDs, so the test proves nothing")
	}
	target.moveTo(restored)
	loadFor(t, form(600*time.Millisecond, 4*time.Second))
	l.stop()
	h.check(t)
}
