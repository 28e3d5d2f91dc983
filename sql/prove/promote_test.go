package prove_test

import (
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

// TestPromotionOfASynchronousStandby kills the primary in mid-load and promotes a standby that has all that was
// committed.
func TestPromotionOfASynchronousStandby(t *testing.T) {
	t.Parallel()
	h, _ := promote(t, chosen, "a synchronous standby", func(primary, _ *localpg.Server) {
		do(t, primary.DSN(database), "alter system set synchronous_standby_names = 'standby'")
		do(t, primary.DSN(database), "select pg_reload_conf()")
		query := "select exists (select from pg_stat_replication where sync_state = 'sync')"
		eventually(t, "the standby is synchronous", func() bool { return ask[bool](t, primary.DSN(database), query) })
	}, func(*localpg.Server) {})
	h.check(t)
}

// TestPromotionOfAnAsynchronousStandby does the same to a standby that stopped receiving before: what the primary
// committed since is lost.
func TestPromotionOfAnAsynchronousStandby(t *testing.T) {
	t.Parallel()
	h, lost := promoteWithLoss(t, chosen)
	h.check(t)
	if chosen == kiloshard && lost == 0 {
		t.Error("the new primary knew of all IDs: no WAL was lost, so the test proves nothing")
	}
}

func promoteWithLoss(t *testing.T, s subject) (h *history, lost int) {
	t.Helper()
	return promote(t, s, "an asynchronous standby", func(_, _ *localpg.Server) {}, func(standby *localpg.Server) {
		do(t, standby.DSN(database), "alter system set primary_conninfo = ''")
		do(t, standby.DSN(database), "select pg_reload_conf()")
		query := "select not exists (select from pg_stat_wal_receiver)"
		eventually(t, "the standby receives no more", func() bool { return ask[bool](t, standby.DSN(database), query) })
	})
}

// promote returns how many of the IDs that clients received the new primary did not know of.
func promote(t *testing.T, s subject, kind string, ready func(primary, standby *localpg.Server), shortly func(standby *localpg.Server)) (h *history, lost int) {
	t.Helper()
	const sessions = 24
	primary := start(t, s, localpg.Config{})
	backup, err := primary.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	standby, err := backup.Standby(t.Context(), "standby", nil)
	stopLater(t, standby, err)
	ready(primary, standby)

	h = newHistory(newClock(), limitsFor(sessions))
	target := targetOn(primary)
	l := startLoad(t, h, loadConfig{dsn: target.dsn, sessions: sessions, breaks: true})
	loadFor(t, form(600*time.Millisecond, 4*time.Second))
	shortly(standby)
	l.awaitMore()
	l.fault("the promotion of %s", kind)
	if err := primary.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !ask[bool](t, standby.DSN(database), "select pg_promote()") {
		t.Fatal("the standby was not promoted")
	}
	lost = h.unknownTo(t, s, standby.DSN(database), numbers...)
	target.moveTo(standby)
	loadFor(t, form(600*time.Millisecond, 4*time.Second))
	l.stop()
	return h, lost
}
