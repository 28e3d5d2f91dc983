package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards"
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
	exec(fmt.Sprintf("begin; select pg_advisory_xact_lock(%d, 13); create table shard_00013.b (id int); update shard_00013.schema_version set version = 3", sql.ShardLock))

	// Within a transaction, who does what looks the same each time.
	watcher, err := pgx.Connect(t.Context(), m.Host(13).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watcher.Close(context.Background()) }()

	taken := make(chan *snapshot.Snapshot, 1)
	go func() {
		s, err := snapshot.Take(t.Context(), m, 13)
		if err != nil {
			t.Error(err)
		}
		taken <- s
	}()
	deadline := time.Now().Add(5 * time.Minute)
	for waiting := false; !waiting; {
		const query = `select exists (select from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and query like '%schema_version IN SHARE UPDATE%')`
		if err := watcher.QueryRow(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody asks for the lock")
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

// TestTakeEnds has somebody keep the donor's lock.
func TestTakeEnds(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (id int)", 13)
	conn, err := pgx.Connect(t.Context(), m.Host(13).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	config := m.Config()
	for i := range config.Hosts {
		config.Hosts[i].DSN += "&lock_timeout=1"
	}
	if m, err = config.Map(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for _, mode := range []string{"access exclusive", "share update exclusive"} {
		if _, err := conn.Exec(ctx, "begin; lock table shard_00013.schema_version in "+mode+" mode"); err != nil {
			t.Fatal(err)
		}
		_, err := snapshot.Take(ctx, m, 13)
		if want := fmt.Sprintf("process %d, role ", conn.PgConn().PID()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", mode, err, want)
		}
		if _, err := conn.Exec(ctx, "rollback"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestScriptDoesNotWait has somebody migrate a shard that is to be made from a snapshot.
func TestScriptDoesNotWait(t *testing.T) {
	t.Parallel()
	m := migrated(t, "create table a (id int)", 13)
	s, err := snapshot.Take(t.Context(), m, 13)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), m.Host(4).ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), fmt.Sprintf("select pg_advisory_lock(%d, 4)", sql.ShardLock)); err != nil {
		t.Fatal(err)
	}
	_, err = snapshot.Apply(t.Context(), snapshot.Config{Snapshot: s, Shards: shards.SetOf(4)})
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != sql.ShardBusy {
		t.Errorf("got %v, expected SQLSTATE %s", err, sql.ShardBusy)
	}
}
