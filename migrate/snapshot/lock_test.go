package snapshot_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/sql"
)

// TestTakeWaits has somebody take the donor to another version while a snapshot is to be taken of it.
func TestTakeWaits(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (id int)", 13)
	conn, err := pgx.Connect(t.Context(), m.Host(13).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	exec := func(statements string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), statements); err != nil {
			t.Fatal(err)
		}
	}
	exec(fmt.Sprintf("begin; select pg_advisory_xact_lock(%d, 13); create table shard_00013.b (id int); update shard_00013.schema_version set version = 3", sql.LockClass+1))

	taken := make(chan *snapshot.Snapshot)
	go func() {
		s, err := snapshot.Take(t.Context(), m, 13)
		if err != nil {
			t.Error(err)
		}
		taken <- s
	}()
	deadline := time.Now().Add(time.Minute)
	for waiting := false; !waiting; {
		const query = `select exists (select from pg_locks where locktype = 'advisory' and not granted
			and database = (select oid from pg_database where datname = current_database()))`
		if err := conn.QueryRow(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody waits for the lock")
		}
	}
	exec("commit")
	s := <-taken
	if s == nil || s.Version() != 3 {
		t.Fatalf("got %v, expected version 3", s)
	}
	if err := s.Check(t.Context(), 4); err != nil {
		t.Error(err)
	}
}
