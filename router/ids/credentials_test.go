package ids_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/ids"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// A central generator asks for the credentials at each connect, and goes on with the earlier ones until the server has
// the new ones.
func TestCentralPasswordChanges(t *testing.T) {
	t.Parallel()
	hosts := shardtest.Hosts(t, 2)
	b := setupOn(t, hosts)
	user := fmt.Sprintf("ids_changes_%d", os.Getpid())
	u, err := url.Parse(hosts[0].ConnString())
	if err != nil {
		t.Fatal("bad DSN")
	}
	conn, err := pgx.Connect(t.Context(), hosts[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		exec("drop role " + user)
		_ = conn.Close(context.Background())
	})
	exec(fmt.Sprintf("create role %s login password 'one' in role %s", user, pgx.Identifier{u.User.Username()}.Sanitize()))

	config := b.m.Config()
	config.Hosts = append([]shards.Host(nil), hosts...)
	for i := range config.Hosts { // connections are made all the time
		separator := "&"
		if !strings.Contains(config.Hosts[i].DSN, "?") {
			separator = "?"
		}
		config.Hosts[i].DSN += separator + "pool_max_conn_lifetime=50ms"
	}
	m, err := config.Map()
	if err != nil {
		t.Fatal(err)
	}
	var password atomic.Value
	var asked atomic.Int64
	password.Store("one")
	g, err := ids.Open(t.Context(), ids.Config{Map: m.WithCredentials(func(context.Context, shards.Host) (shards.Credentials, error) {
		asked.Add(1)
		return shards.Credentials{User: user, Password: password.Load().(string)}, nil
	}), Name: "message"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	defer cancel()
	check := func(when string) {
		t.Helper()
		for before := asked.Load(); asked.Load() < before+3; {
			if _, err := g.NextIDs(ctx, 1); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
		}
	}
	check("before")
	password.Store("two")
	check("changed where it is kept")
	exec("alter role " + user + " password 'two'")
	check("changed on the server")
	exec("alter role " + user + " password 'three'")
	for err = nil; err == nil; _, err = g.NextIDs(ctx, 1) { // until its connections are old
	}
	if !errors.Is(err, connect.ErrCredentials) {
		t.Errorf("got %v, expected that the credentials are refused", err)
	}
}
