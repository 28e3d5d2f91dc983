package connect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// Whoever locks kiloshard.settings holds no new session up for good: it fails, and says which process that is.
func TestLockedSettings(t *testing.T) {
	t.Parallel()
	sql(t, plain, "create database locked")
	t.Cleanup(func() { sql(t, plain, "drop database locked with (force)") })
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var conns [2]*pgx.Conn
	for i := range conns {
		conn, err := pgx.Connect(ctx, plain.DSN("locked"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		conns[i] = conn
	}
	holder, waiter := conns[0], conns[1].PgConn()
	exec := func(text string) {
		t.Helper()
		if _, err := holder.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	exec("create schema kiloshard; create table kiloshard.settings (cluster text)")
	exec("begin; lock table kiloshard.settings in access exclusive mode")
	m, err := shardtest.MapConfig(8, []shards.Host{{Name: "pg-a", DSN: plain.DSN("locked") + "&lock_timeout=1", Weight: 1}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	host := m.Hosts()[0]
	_, open := connect.Open(ctx, host, nil)
	_, openPlain := connect.OpenPlain(ctx, host, nil)
	for way, err := range map[string]error{
		"Open": open, "OpenPlain": openPlain, "without a lock_timeout": connect.CheckIdentity(ctx, waiter, host),
	} {
		var pg *pgconn.PgError
		want := fmt.Sprintf("kiloshard.settings by process %d, role ", holder.PgConn().PID())
		if !errors.As(err, &pg) || pg.Code != "55P03" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", way, err, want)
		}
	}
	// One that gives up leaves nothing that waits on the server.
	patient, err := shardtest.MapConfig(8, []shards.Host{{Name: "pg-a", DSN: plain.DSN("locked") + "&lock_timeout=600000", Weight: 1}}).Map()
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := connect.Open(ctx, patient.Hosts()[0], nil); return err },
		func(ctx context.Context) error {
			_, err := connect.OpenPlain(ctx, patient.Hosts()[0], nil)
			return err
		},
	} {
		short, cancel := context.WithTimeout(ctx, time.Second)
		if err := check(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		cancel()
		for waiting := 1; waiting > 0; {
			if err := holder.QueryRow(ctx, "select count(*) from pg_locks where not granted and relation = 'kiloshard.settings'::regclass").Scan(&waiting); err != nil {
				t.Fatal(err)
			}
		}
	}
	exec("rollback")
	if err := connect.CheckIdentity(ctx, waiter, host); err != nil {
		t.Error(err)
	}
	if results, err := waiter.Exec(ctx, "show lock_timeout").ReadAll(); err != nil || string(results[0].Rows[0][0]) != "0" {
		t.Errorf("lock_timeout is %s afterwards, %v", results[0].Rows[0][0], err)
	}
}
