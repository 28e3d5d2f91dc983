package primary_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/primary"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

func TestMain(m *testing.M) {
	localpg.IgnoreEnvironment()
	os.Exit(leak.Check(m.Run()))
}

// TestOneAddress kills and restarts a host with one address. Connections use the watch. The test reports failed connects to
// it, and checks its callbacks.
func TestOneAddress(t *testing.T) {
	t.Parallel()
	server := shardtest.OwnServer(t)
	config, err := pgx.ParseConfig(server.DSN("postgres"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	var downs, ups atomic.Int64
	w := primary.New(primary.Config{
		Host: "pg-a", Conn: config, FailAfter: time.Minute,
		Busy:  func() bool { return false },
		Down:  func(error) { downs.Add(1) },
		Up:    func() { ups.Add(1) },
		Moved: func() {},
	})
	defer w.Close()
	connect := func() (*pgx.Conn, error) {
		c := config.Copy()
		if err := w.BeforeConnect(t.Context(), c); err != nil {
			return nil, err
		}
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			w.Failed(err)
			return nil, err
		}
		w.Connected()
		return conn, nil
	}
	if err := w.Admit(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	conn, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	turns := w.Turns()
	if w.Demoted(t.Context(), turns) || w.Several() || !w.Passing() || primary.ConnOf(conn.PgConn().Conn()).Cut() {
		t.Errorf("%+v", w.Stats())
	}
	if err := server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(); err == nil {
		t.Error("connected to a server that was killed")
	}
	if err := w.Admit(t.Context(), nil); !errors.Is(err, failure.ErrHostDown) || w.Stats().Up || w.Turns() == turns {
		t.Errorf("got %v, %+v", err, w.Stats())
	}
	left := errors.New("elsewhere")
	if err := w.Admit(t.Context(), func() error { return left }); !errors.Is(err, left) {
		t.Errorf("got %v", err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for w.Admit(ctx, nil) != nil {
		if ctx.Err() != nil {
			t.Fatal("the host did not come up in time")
		}
	}
	if s := w.Stats(); !s.HalfOpen {
		t.Errorf("before a connection: %+v", s)
	}
	again, err := connect()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close(context.Background())
	if s := w.Stats(); s.HalfOpen || !s.Up || downs.Load() != 1 || ups.Load() != 1 {
		t.Errorf("%+v, %d times down, %d times up", s, downs.Load(), ups.Load())
	}
	_ = conn.Close(context.Background())
	w.Retire(left)
	if err := w.Admit(t.Context(), nil); err != nil {
		t.Errorf("retired, and up: %v", err)
	}
}
