package connect_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/shards/shardtest/leak"
)

// sentinel is the password that nobody may see.
const sentinel = "s3ntinel-pa55word"

var (
	server    *localpg.Server // with TLS, under a certificate for localhost
	plain     *localpg.Server // without
	authority *localpg.Authority
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	localpg.IgnoreEnvironment()
	connect.WaitBriefly()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	code, err := 1, start(ctx)
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, s := range []*localpg.Server{server, plain} {
		if s == nil {
			continue
		}
		if err := s.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return leak.Check(code)
}

// start starts two servers of our own: a caller's would have to be changed.
func start(ctx context.Context) (err error) {
	config := shardtest.ServerConfig()
	config.DSN = ""
	if server, err = localpg.Start(ctx, config); err != nil {
		return err
	}
	if plain, err = localpg.Start(ctx, config); err != nil {
		return err
	}
	if authority, err = localpg.NewAuthority(); err != nil {
		return err
	}
	if err = server.EnableTLS(ctx, authority, "localhost"); err != nil {
		return err
	}
	return server.AllowFirst(ctx, "hostssl all by_cert all cert\nhostssl all only_tls all scram-sha-256\nhost all by_cert,only_tls all reject")
}

// role makes a role of its own on a server, which may log in with the sentinel, and returns the DSN of a URL for it, with
// what is to be added behind. It is gone when the test ends.
func role(t *testing.T, s *localpg.Server, user string) (dsn func(password, host, query string) string) {
	t.Helper()
	sql(t, s, fmt.Sprintf("create role %s login password '%s'", user, sentinel))
	t.Cleanup(func() { sql(t, s, "drop role "+user) })
	return func(password, host, query string) string {
		u, err := url.Parse(s.DSN("postgres"))
		if err != nil {
			t.Fatal("bad DSN")
		}
		if u.User = url.User(user); password != "" {
			u.User = url.UserPassword(user, password)
		}
		if host != "" {
			u.Host = host + ":" + u.Port()
		}
		u.RawQuery = query
		return u.String()
	}
}

func sql(t *testing.T, s *localpg.Server, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, text); err != nil {
		t.Fatal(err)
	}
}

// file writes a file that only its owner can read.
func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, content)
	return path
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func hostOf(dsn string) shards.Host { return shards.Host{Name: "pg-a", DSN: dsn} }

func checkText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, part := range want {
		if !strings.Contains(got, part) {
			t.Errorf("expected %q in:\n%s", part, got)
		}
	}
	if strings.Contains(got, sentinel) {
		t.Errorf("the password is in:\n%s", got)
	}
}
