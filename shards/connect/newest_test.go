package connect_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// frozen is the address of a server that the kernel connects to, and that never answers, as one that is stopped by SIGSTOP.
func frozen(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// places returns a DSN with several addresses instead of its own.
func places(t *testing.T, dsn string, addresses ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	return strings.Replace(dsn, "@"+u.Host+"/", "@"+strings.Join(addresses, ",")+"/", 1)
}

func addressOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("a server's DSN is no URL")
	}
	return u.Host
}

// A session leads to the primary that was promoted last, in any order of a host's addresses, and no silent address holds it up.
func TestNewestPrimary(t *testing.T) {
	t.Parallel()
	primary := shardtest.OwnServer(t)
	standby := shardtest.Standby(t, primary, "standby")
	dsn := primary.DSN("postgres")
	old, other := addressOf(t, dsn), addressOf(t, standby.DSN("postgres"))
	leads := func(want string, addresses ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // an address by itself has 30
		defer cancel()
		host := hostOf(places(t, dsn, addresses...))
		conn, err := connect.Open(ctx, host, nil)
		if err != nil {
			t.Fatalf("%v: %v", addresses, err)
		}
		if got := at(conn); got != want {
			t.Errorf("%v: led to %s, want %s", addresses, got, want)
		}
		_ = conn.Close(ctx)
		plain, err := connect.OpenPlain(ctx, host, nil)
		if err != nil {
			t.Fatalf("%v: %v", addresses, err)
		}
		if got := plain.Conn().RemoteAddr().String(); got != want {
			t.Errorf("%v: OpenPlain led to %s, want %s", addresses, got, want)
		}
		_ = plain.Close(ctx)
	}
	silent := frozen(t)
	leads(old, other, old)
	leads(old, silent, old)
	leads(other, silent, other)
	conn, err := pgx.Connect(t.Context(), standby.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	var promoted bool
	if err := conn.QueryRow(t.Context(), "select pg_promote()").Scan(&promoted); err != nil || !promoted {
		t.Fatalf("the standby was not promoted: %v", err)
	}
	_ = conn.Close(t.Context())
	leads(other, old, other) // both take writes
	leads(other, other, silent, old)
}

func at(conn *pgx.Conn) string {
	c := conn.Config()
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}

// If no address answers, the error names each once.
func TestNoAddressAnswers(t *testing.T) {
	t.Parallel()
	_, err := connect.Open(t.Context(), hostOf("postgres://app@"+closed(t)+","+frozen(t)+"/app?sslmode=disable&connect_timeout=1"), nil)
	if err == nil || strings.Count(err.Error(), "127.0.0.1:") != 2 || strings.Count(err.Error(), "user app, database app") != 1 ||
		!strings.Contains(err.Error(), "connection refused") || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("got %v", err)
	}
}

// closed is an address at which nothing listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
