package connect_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// poolOf returns a pool as the router makes it.
func poolOf(t *testing.T, host shards.Host, adjust func(*pgxpool.Config)) (*connect.Login, *pgxpool.Pool) {
	t.Helper()
	login, config, err := connect.ForPool(host)
	if err != nil {
		t.Fatal(err)
	}
	if adjust != nil {
		adjust(config)
	}
	login.Attend(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return login, pool
}

// acquire has the pool make a new connection, which it then closes.
func acquire(t *testing.T, login *connect.Login, pool *pgxpool.Pool) error {
	t.Helper()
	return login.Try(t.Context(), func(ctx context.Context) error {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		_, err = conn.Exec(ctx, "select 1")
		return errors.Join(err, conn.Conn().Close(ctx))
	})
}

// A password is changed where it is kept first, and then on the server: no connect fails, wherever it is kept.
func TestPasswordChanges(t *testing.T) {
	t.Parallel()
	const next = "n3xt-" + sentinel
	var asked atomic.Int64
	tests := []struct {
		name string
		host func(t *testing.T, user string, dsn func(password, host, query string) string) (shards.Host, func(password string))
	}{
		{"passfile", func(t *testing.T, user string, dsn func(password, host, query string) string) (shards.Host, func(string)) {
			path := file(t, "*:*:*:*:"+sentinel)
			return hostOf(dsn("", "", "sslmode=disable&passfile="+path)), func(p string) { write(t, path, "*:*:*:*:"+p) }
		}},
		{"service", func(t *testing.T, user string, dsn func(password, host, query string) string) (shards.Host, func(string)) {
			u, err := url.Parse(dsn("", "", ""))
			if err != nil {
				t.Fatal("bad DSN")
			}
			text := fmt.Sprintf("[photos]\nhost=%s\nport=%s\nuser=%s\ndbname=postgres\nsslmode=disable\npassword=", u.Hostname(), u.Port(), user)
			path := file(t, text+sentinel+"\n")
			return hostOf("service=photos servicefile=" + path), func(p string) { write(t, path, text+p+"\n") }
		}},
		{"variable", func(t *testing.T, user string, dsn func(password, host, query string) string) (shards.Host, func(string)) {
			var value atomic.Value
			value.Store(sentinel)
			u, err := url.Parse(dsn("", "", ""))
			if err != nil {
				t.Fatal("bad DSN")
			}
			yaml := fmt.Sprintf("cluster: photos\nshards: 1\nepoch: 2026-01-01\nhosts: [{name: pg-a, dsn: \"postgres://%s:${SECRET}@%s/postgres?sslmode=disable\"}]\nplacement: [{shards: 0, host: pg-a}]\n", user, u.Host)
			c, err := shards.Parse("k.yaml", []byte(yaml), func(string) (string, bool) { return value.Load().(string), true })
			if err != nil {
				t.Fatal(err)
			}
			return c.Hosts[0], func(p string) { value.Store(p) }
		}},
		{"function", func(t *testing.T, user string, dsn func(password, host, query string) string) (shards.Host, func(string)) {
			var value atomic.Value
			value.Store(sentinel)
			host := hostOf(dsn("", "", "sslmode=disable"))
			return host.WithCredentials(func(context.Context, shards.Host) (shards.Credentials, error) {
				asked.Add(1)
				return shards.Credentials{Password: value.Load().(string)}, nil
			}), func(p string) { value.Store(p) }
		}},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			user := fmt.Sprintf("changes_%d", i)
			host, set := test.host(t, user, role(t, server, user))
			login, pool := poolOf(t, host, nil)
			another, fresh := poolOf(t, host, nil) // which has no connection before the change
			_ = fresh
			check := func(when string) {
				t.Helper()
				for range 3 {
					if err := acquire(t, login, pool); err != nil {
						t.Errorf("%s: %v", when, err)
					}
				}
				beside, err := login.Open(t.Context(), pool.Config())
				if err != nil {
					t.Fatalf("%s, beside the pool: %v", when, err)
				}
				_ = beside.Close(t.Context())
			}
			check("before")
			set(next)
			check("changed where it is kept")
			if err := acquire(t, another, fresh); !errors.Is(err, connect.ErrCredentials) {
				t.Errorf("a pool that knows no earlier password: got %v, expected that the credentials are refused", err)
			} else {
				checkText(t, err.Error(), "user "+user, "SQLSTATE 28P01", "expected ")
			}
			sql(t, server, fmt.Sprintf("alter role %s password '%s'", user, next))
			check("changed on the server too")
			if err := acquire(t, another, fresh); err != nil {
				t.Error(err)
			}
			set(sentinel + "-wrong")
			check("what is kept is wrong; the one accepted last goes on")
			sql(t, server, fmt.Sprintf("alter role %s password 'other'", user))
			if err := acquire(t, login, pool); !errors.Is(err, connect.ErrCredentials) {
				t.Errorf("got %v, expected that the credentials are refused", err)
			} else {
				checkText(t, fmt.Sprintf("%v %+v %#v", err, err, login), "SQLSTATE 28P01")
			}
		})
	}
	t.Cleanup(func() {
		if asked.Load() < 10 {
			t.Errorf("the function was asked %d times, expected once for each connect", asked.Load())
		}
	})
}

// What the caller puts into a pool's config stays as it is.
func TestCallersOwn(t *testing.T) {
	t.Parallel()
	dsn := role(t, server, "callers_own")
	host := hostOf(dsn("wrong-"+sentinel, "192.0.2.1", "sslmode=verify-full")).WithCredentials(
		func(context.Context, shards.Host) (shards.Credentials, error) {
			return shards.Credentials{User: "nobody", Password: "wrong"}, nil
		})
	right, err := pgx.ParseConfig(dsn("", "", "sslmode=disable"))
	if err != nil {
		t.Fatal("bad DSN")
	}
	login, pool := poolOf(t, host, func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = right.Host, nil, nil
		c.ConnConfig.User = "callers"
		c.ConnConfig.Password = sentinel
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			if c.User != "callers" {
				return fmt.Errorf("user %s", c.User)
			}
			c.User = "callers_own" // and its BeforeConnect has the last word
			return nil
		}
	})
	if err := acquire(t, login, pool); err != nil {
		t.Error(err)
	}
}

func TestCredentialsFail(t *testing.T) {
	t.Parallel()
	dsn := role(t, server, "credentials_fail")
	vault := errors.New("the vault is sealed")
	host := hostOf(dsn("", "", "sslmode=disable")).WithCredentials(func(ctx context.Context, host shards.Host) (shards.Credentials, error) {
		if _, limited := ctx.Deadline(); !limited || host.Name != "pg-a" {
			t.Errorf("no limit, or the wrong host %v", host)
		}
		return shards.Credentials{}, vault
	})
	_, err := connect.Open(t.Context(), host, nil)
	var e *connect.Error
	if !errors.Is(err, vault) || !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	login, pool := poolOf(t, host, nil)
	if err := acquire(t, login, pool); !errors.Is(err, vault) || !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}
