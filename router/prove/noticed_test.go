package prove_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/router"
)

// TestPromotionIsNoticed promotes a standby that serves reads, while the old primary goes on, and prints for how long writes went to
// the old primary. The router measures the replica ten times a second, and probes the addresses once a second.
func TestPromotionIsNoticed(t *testing.T) {
	t.Parallel()
	rounds := 1
	if pgtest.Full() {
		rounds = 10
	}
	var late []time.Duration
	lost := 0
	for range rounds {
		took, wrote := noticed(t, startPair(t))
		late, lost = append(late, took), lost+wrote
	}
	slices.Sort(late)
	t.Logf("last write on the old primary after %d promotions: median %v, longest %v; %d writes are on the old primary only", rounds, late[len(late)/2], late[len(late)-1], lost)
}

// noticed promotes the standby of a pair. It returns the time from the promotion to the last acknowledged write on the old primary, and
// the number of acknowledged writes in that time.
func noticed(t *testing.T, p pair) (last time.Duration, wrote int) {
	t.Helper()
	do(t, p.primary.DSN(database), `alter system set synchronous_standby_names = ''`) // else the old primary acknowledges nothing
	do(t, p.primary.DSN(database), `select pg_reload_conf()`)
	r := open(t, router.Config{}, p.primary.DSN(database))
	changed(t, r, withStandby(dsn(t, p.primary, p.standby), p.standby.DSN(database)))
	s := shard(t, r, 1)
	some, end := callers(t, 1, func(int64) error {
		var note string
		return s.ReadOnly(router.Reads{}).QueryRow(t.Context(), selection, 0).Scan(&note)
	})
	defer end()
	some("reads")
	eventually(t, "the replica is read from", func() bool { return t.Failed() || r.ReadStats()[0].Replicas[0].Reads > 10 })
	old := ask[string](t, p.primary.DSN(database), `select current_setting('port')`)
	var acknowledged []time.Time
	done := make(chan struct{})
	go func() {
		defer close(done)
		for id := int64(1); t.Context().Err() == nil; id++ {
			var at string
			err := s.QueryRow(t.Context(), `insert into ledger values ($1, '') returning current_setting('port')`, id).Scan(&at)
			switch {
			case err == nil && at != old:
				return
			case err == nil:
				acknowledged = append(acknowledged, time.Now())
			}
		}
	}()
	do(t, p.standby.DSN(database), `select pg_promote(false)`)
	eventually(t, "the standby is promoted", func() bool { return !ask[bool](t, p.standby.DSN(database), `select pg_is_in_recovery()`) })
	since := time.Now()
	<-done
	for _, at := range acknowledged {
		if late := at.Sub(since); late > 0 {
			last, wrote = max(last, late), wrote+1
		}
	}
	return last, wrote
}
