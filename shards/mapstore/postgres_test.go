package mapstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	testStore(t, func(t *testing.T, killed bool) kit {
		on := server
		if killed {
			on = newServer(t)
		}
		dsn := newDatabase(t, on)
		k := kit{
			open: func(t *testing.T, change ...func(*mapstore.Options)) mapstore.Store {
				return openPostgres(t, dsn, change...)
			},
		}
		var good string
		k.spoil = func(t *testing.T, how func(string) string) {
			good = queryOne[string](t, dsn, "select document from kiloshard.maps order by version desc limit 1")
			addRow(t, dsn, how(good))
		}
		k.mend = func(t *testing.T) { addRow(t, dsn, good) }
		if killed && on.Source() != localpg.DSN {
			k.kill = func(t *testing.T) {
				if err := on.Kill(newContext(t)); err != nil {
					t.Fatal(err)
				}
			}
			k.restart = func(t *testing.T) {
				if err := on.Restart(newContext(t)); err != nil {
					t.Fatal(err)
				}
			}
		}
		return k
	})
}

func openPostgres(t *testing.T, dsn string, change ...func(*mapstore.Options)) mapstore.Store {
	t.Helper()
	return open(t, shards.Config{Cluster: cluster, Store: shards.Store{Kind: shards.StorePostgres, DSN: dsn}}, change...)
}

// newServer starts a server for one test, which may be killed.
func newServer(t *testing.T) *localpg.Server {
	t.Helper()
	s, err := localpg.Start(newContext(t), shardtest.ServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

var databases atomic.Int64

func newDatabase(t *testing.T, on *localpg.Server) (dsn string) {
	t.Helper()
	dsn, err := on.CreateDatabase(newContext(t), fmt.Sprintf("mapstore_%d_%d", os.Getpid(), databases.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	return dsn
}

// addRow makes the next version past the store.
func addRow(t *testing.T, dsn, document string) {
	t.Helper()
	execSQL(t, dsn, `insert into kiloshard.maps (cluster, version, follows, document, made_by, why, attempt)
select cluster, max(version) + 1, max(version), $1, 'alice', 'mark 1', 'none' from kiloshard.maps group by cluster`, document)
}

func execSQL(t *testing.T, dsn, query string, args ...any) {
	t.Helper()
	if err := tryExecSQL(t, dsn, query, args...); err != nil {
		t.Fatal(err)
	}
}

func tryExecSQL(t *testing.T, dsn, query string, args ...any) error {
	t.Helper()
	conn, err := pgx.Connect(newContext(t), dsn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(newContext(t), query, args...)
	return errors.Join(err, conn.Close(newContext(t)))
}

func queryOne[T any](t *testing.T, dsn, query string, args ...any) T {
	t.Helper()
	conn, err := pgx.Connect(newContext(t), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var value T
	if err := conn.QueryRow(newContext(t), query, args...).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for until := time.Now().Add(testLimit); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}
