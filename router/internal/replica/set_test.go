package replica_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router/internal/replica"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	localpg.IgnoreEnvironment()
	os.Exit(leak.Check(m.Run()))
}

func connect(t *testing.T, s *localpg.Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// newSet returns a set of a primary and one standby, which measures nothing yet.
func newSet(t *testing.T, primary, standby *localpg.Server) *replica.Set {
	t.Helper()
	server := func(s *localpg.Server) replica.Server {
		return replica.Server{Name: "pg-a", Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, s.DSN("postgres")) }}
	}
	set := replica.New(t.Context(), server(primary), []replica.Server{server(standby)})
	t.Cleanup(func() { set.Close(func() {}) })
	return set
}

// TestServersOfOneReplica measures one standby, and asks it and a second standby that has stopped replaying. Answers of the
// second one are refused, no matter how fresh the measured one is.
func TestServersOfOneReplica(t *testing.T) {
	t.Parallel()
	first := shardtest.OwnServer(t)
	measured, late := shardtest.Standby(t, first, "measured"), shardtest.Standby(t, first, "late")
	set := newSet(t, first, measured)
	want := replica.Want{MaxLag: time.Minute, ReplicaOnly: true, Wait: time.Minute}
	chosen, err := set.Find(t.Context(), &want, 0)
	if err != nil || chosen.Index != 0 || chosen.Life.Err() != nil {
		t.Fatalf("got %+v, %v", chosen, err)
	}
	one, other, writer := connect(t, measured), connect(t, late), connect(t, first)
	check := func(conn *pgx.Conn, want replica.Want) (replica.Seen, error) {
		t.Helper()
		seen, err := set.Ask(t.Context(), 0, conn.PgConn())
		if err != nil {
			t.Fatal(err)
		}
		return seen, set.Check(0, &want, time.Now(), seen)
	}
	if seen, err := check(one, want); err != nil || seen.Server != chosen.Server {
		t.Errorf("the measured server: %+v, %v", seen, err)
	}
	if seen, err := check(other, want); err != nil || seen.Server == chosen.Server {
		t.Errorf("the other server: %+v, %v", seen, err)
	}
	if _, err := other.Exec(t.Context(), `select pg_wal_replay_pause()`); err != nil {
		t.Fatal(err)
	}
	for state := ""; state != "paused"; {
		if err := other.QueryRow(t.Context(), `select pg_get_wal_replay_pause_state()`).Scan(&state); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := writer.Exec(t.Context(), `create table written ()`); err != nil {
		t.Fatal(err)
	}
	if want.After, err = replica.ScanPosition(writer.QueryRow(t.Context(), replica.PositionQuery)); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Find(t.Context(), &want, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := check(one, want); err != nil {
		t.Errorf("the measured server, after a write: %v", err)
	}
	if _, err := check(other, want); err == nil {
		t.Error("a server that has stopped replaying was accepted")
	}
	lag := replica.Want{MaxLag: 100 * time.Millisecond, ReplicaOnly: true, Wait: time.Minute}
	for { // until the write is older than the lag allows
		if _, err := set.Find(t.Context(), &lag, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := check(other, lag); err != nil {
			break
		}
	}
	if err := set.Check(0, &want, time.Now(), replica.Seen{Standby: true, Server: "1"}); err == nil {
		t.Error("an unknown server was accepted")
	}
	if _, err := set.Ask(t.Context(), 0, writer.PgConn()); err == nil {
		t.Error("the primary was accepted as a replica")
	}
	var tried replica.Tried
	tried.Add(0)
	want.Wait = -1
	if _, err := set.Find(t.Context(), &want, tried); !errors.Is(err, replica.ErrNone) {
		t.Errorf("when all are tried: %v", err)
	}
}
