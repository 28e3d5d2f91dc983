package replica_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestPromoted holds that the measurement of a replica tells once that it was promoted.
func TestPromoted(t *testing.T) {
	t.Parallel()
	first := shardtest.OwnServer(t)
	standby := shardtest.Standby(t, first, "standby")
	at := func(dsn string) replica.Server {
		return replica.Server{Name: "pg-a", Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, dsn) }}
	}
	set := replica.New(t.Context(), at(first.DSN("postgres")), []replica.Server{at(standby.DSN("postgres"))})
	defer set.Close(func() {})
	told := make(chan struct{}, 8)
	set.Promoted = func() { told <- struct{}{} }
	want := replica.Want{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute}
	if _, err := set.Find(t.Context(), &want, 0); err != nil {
		t.Fatal(err)
	}
	if len(told) != 0 {
		t.Error("a standby was taken for a primary")
	}
	if _, err := connect(t, standby).Exec(t.Context(), `select pg_promote()`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Fatal("the promotion was not told")
	}
	want.Wait = 3 * time.Second // it is measured again meanwhile
	if _, err := set.Find(t.Context(), &want, 0); err == nil {
		t.Error("a primary was chosen as a replica")
	}
	if len(told) != 0 {
		t.Errorf("the promotion was told %d more times", len(told))
	}
}
