package replica_test

import (
	"testing"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestPromoted holds that a set reports the promotion of its replica once.
func TestPromoted(t *testing.T) {
	t.Parallel()
	first := shardtest.OwnServer(t)
	standby := shardtest.Standby(t, first, "standby")
	set := newSet(t, first, standby)
	reports := make(chan struct{}, 8)
	set.Promoted = func() { reports <- struct{}{} }
	want := replica.Want{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute}
	if _, err := set.Find(t.Context(), &want, 0); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 0 {
		t.Error("a standby was taken for a primary")
	}
	if _, err := connect(t, standby).Exec(t.Context(), `select pg_promote()`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reports:
	case <-time.After(time.Minute):
		t.Fatal("the set did not report the promotion")
	}
	want.Wait = 3 * time.Second // long enough for another measurement
	if _, err := set.Find(t.Context(), &want, 0); err == nil {
		t.Error("a primary was chosen as a replica")
	}
	if len(reports) != 0 {
		t.Errorf("the set reported the promotion %d more times", len(reports))
	}
}
