package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// setupServer makes a cluster of one host on a server of its own, with room for few locks, and
// which puts nothing on disk unless it is asked to.
func setupServer(t *testing.T, count int, namesAndContents ...string) (*bundle, *localpg.Server) {
	t.Helper()
	cfg := shardtest.ServerConfig()
	if cfg.DSN != "" {
		t.Skip("this test kills its server: unset KILOSHARD_POSTGRES_DSN and install Postgres or Docker")
	}
	cfg.Settings = map[string]string{
		"fsync": "off", "wal_writer_delay": "10s", "wal_writer_flush_after": "1GB", "bgwriter_lru_maxpages": "0",
		"max_connections": "20", "max_locks_per_transaction": "10", "autovacuum": "off", "max_wal_senders": "0",
	}
	server, err := localpg.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return setupOn(t, count, []shards.Host{{Name: "pg-a", DSN: server.DSN("postgres")}}, namesAndContents...), server
}

func crash(t *testing.T, b *bundle, server *localpg.Server) {
	t.Helper()
	if err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	clear(b.conns)
}

func TestWhatIsDoneOutlivesACrash(t *testing.T) {
	t.Parallel()
	b, server := setupServer(t, 60, "001_users.sql", users, "002_photos.sql", photos)
	ctx, interrupt := context.WithCancel(t.Context())
	finished := 0
	b.cfg.Progress = observer(func(shards.Number) {
		if finished++; finished == 20 {
			interrupt()
		}
	})
	report, err := migrate.Up(ctx, b.cfg)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want an interrupt", err)
	}
	crash(t, b, server)
	b.hasVersions(report.Done, 2)

	b.cfg.Progress = nil
	b.up()
	crash(t, b, server)
	b.hasVersions(b.m.All(), 2)
}

// TestNothingToDoOutlivesACrash has another run's last commits not be on disk yet when up finds nothing to do. They are
// so few bytes that no page of WAL is full, which the server would write by itself.
func TestNothingToDoOutlivesACrash(t *testing.T) {
	t.Parallel()
	b, server := setupServer(t, 3, "001_users.sql", users)
	b.up()
	b.cfg.Files = files("001_users.sql", users, "002_photos.sql", photos)
	for n := range b.m.All().All() {
		b.exec(n, photos+"; update schema_version set version = version")
	}
	for n := range b.m.All().All() {
		b.exec(n, "set synchronous_commit = off; update schema_version set version = 2")
	}
	equal(t, "nothing to do", b.up().UpToDate.String(), "0-2")
	crash(t, b, server)
	b.hasVersions(b.m.All(), 2)
}

func (b *bundle) hasVersions(set shards.Set, want int32) {
	b.t.Helper()
	versions := b.versions()
	for n := range set.All() {
		equal(b.t, fmt.Sprintf("version of shard %d", n), versions[n], want)
	}
}

func TestServerThatCrashesInBetween(t *testing.T) {
	t.Parallel()
	b, server := setupServer(t, 40, "001_users.sql", users, "002_photos.sql", photos)
	finished := 0
	b.cfg.Progress = observer(func(shards.Number) {
		if finished++; finished == 10 {
			if err := server.Kill(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	report, partial := b.upFails()
	if !errors.Is(partial, migrate.ErrNotFlushed) {
		t.Errorf("got %v, want ErrNotFlushed", partial)
	}
	equal(t, "done", report.Done.String(), "")
	equal(t, "all shards", len(partial.Failed)+partial.NotAttempted.Len(), 40)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	clear(b.conns)
	b.cfg.Progress = nil
	b.up()
	b.hasVersions(b.m.All(), 2)
	for n := range b.m.All().All() {
		equal(t, "tables", b.value(n, "select count(*) from pg_tables where schemaname = current_schema()"), "3")
	}
}

// The server has room for some 300 locks, and each version table takes two while it is read.
func TestStatusNeedsFewLocks(t *testing.T) {
	t.Parallel()
	b, _ := setupServer(t, 1000, "001_users.sql", "select 1")
	b.up()
	b.hasVersions(b.m.All(), 1)
}
