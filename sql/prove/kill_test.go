package prove_test

import (
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// TestKilledServer kills the whole server in mid-load with SIGKILL and starts it again, several times.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	const sessions = 24
	server := start(t, chosen, localpg.Config{})
	h := newHistory(newClock(), limitsFor(sessions))
	l := startLoad(t, h, loadConfig{dsn: targetOn(server).dsn, sessions: sessions, breaks: true})
	for n := range form(2, 10) {
		loadFor(t, form(400*time.Millisecond, 1500*time.Millisecond))
		l.fault("kill %d", n+1)
		if err := server.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	loadFor(t, form(400*time.Millisecond, 2*time.Second))
	l.stop()
	h.check(t)
}
