package localpg_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/localpg"
)

const databasesQuery = `select coalesce(string_agg(datname, ',' order by datname), '')
	from pg_database where datname not in ('postgres', 'template0', 'template1')`

func TestExternal(t *testing.T) {
	t.Parallel()
	base := start(t, localpg.Config{Source: localpg.Local, Settings: map[string]string{"fsync": "off"}})
	admin := base.DSN("postgres")
	u, err := url.Parse(admin)
	noError(t, err)
	password, _ := u.User.Password()
	host, port, _ := net.SplitHostPort(u.Host)
	keywords := "host=" + host + " port=" + port + " user=postgres dbname=postgres sslmode=disable password=" + password

	for _, form := range []struct{ name, dsn string }{
		{"URL", admin},
		{"URL with the database as a parameter", strings.Replace(admin, "/postgres?", "/?dbname=postgres&", 1)},
		{"keywords", keywords},
	} {
		t.Run("creates and drops, "+form.name, func(t *testing.T) {
			server := start(t, localpg.Config{DSN: form.dsn})
			equal(t, "source", server.Source(), localpg.DSN)
			want := "PostgreSQL " + base.Version() + " given by its DSN, " + u.Host
			equal(t, "description", server.Describe(), want)
			for _, name := range []string{"one", `odd "name" it's \ 100%`} {
				dsn, err := server.CreateDatabase(t.Context(), name)
				noError(t, err)
				equal(t, "DSN", dsn, server.DSN(name))
				equal(t, "database", ask[string](t, dsn, "select current_database()"), name) // and stays connected
			}
			_, err := server.CreateDatabase(t.Context(), "postgres")
			equal(t, "a database that is there is an error", err == nil, false)
			noError(t, server.Stop(t.Context()))
			equal(t, "databases", ask[string](t, admin, databasesQuery), "")
		})
	}

	t.Run("is not ours", func(t *testing.T) {
		server := start(t, localpg.Config{DSN: admin})
		equal(t, "Kill", errors.Is(server.Kill(t.Context()), errors.ErrUnsupported), true)
		equal(t, "Restart", errors.Is(server.Restart(t.Context()), errors.ErrUnsupported), true)
		equal(t, "PID", server.PID(), 0)
		equal(t, "data directory", server.DataDir(), "")
		equal(t, "answer", ask[int](t, server.DSN("postgres"), "select 1"), 1)
	})

	t.Run("drops even if the context has ended", func(t *testing.T) {
		server := start(t, localpg.Config{DSN: admin})
		_, err := server.CreateDatabase(t.Context(), "late")
		noError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = server.CreateDatabase(ctx, "later")
		equal(t, "canceled", errors.Is(err, context.Canceled), true)
		noError(t, server.Stop(ctx))
		equal(t, "databases", ask[string](t, admin, databasesQuery), "")
	})

	t.Run("keeps", func(t *testing.T) {
		server := start(t, localpg.Config{DSN: admin, Keep: true})
		_, err := server.CreateDatabase(t.Context(), "kept")
		noError(t, err)
		noError(t, server.Stop(t.Context()))
		equal(t, "databases", ask[string](t, admin, databasesQuery), "kept")
	})

	t.Run("wrong password", func(t *testing.T) {
		wrong := *u
		wrong.User = url.UserPassword("postgres", "sesame-open")
		_, err := localpg.Start(t.Context(), localpg.Config{DSN: wrong.String()})
		equal(t, "an error", err == nil, false)
		equal(t, "says why: "+err.Error(), strings.Contains(err.Error(), "password authentication failed"), true)
		equal(t, "password in "+err.Error(), strings.Contains(err.Error(), "sesame"), false)
	})
}

func TestBadDSNHidesThePassword(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, dsn string }{
		{"not escaped #", "postgres://app:sesame#open@127.0.0.1/app"},
		{"not escaped /", "postgres://app:sesame/open@127.0.0.1/app"},
		{"not escaped %", "postgres://app:sesame%open@127.0.0.1/app"},
		{"not escaped [", "postgres://app:se[same@127.0.0.1/app"},
		{"blank", "postgres://app:sesame open@127.0.0.1/app"},
		{"other scheme", "postgre://app:sesame@127.0.0.1/app"},
		{"port", "postgres://app:sesame@127.0.0.1:port/app"},
		{"mode", "postgres://app:sesame@127.0.0.1/app?sslmode=sometimes"},
		{"parameter", "postgres://127.0.0.1:1/app?sslmode=disable&password=sesame&port=x"},
		{"quote left open", "host=127.0.0.1 password='sesame"},
		{"blanks", "host=127.0.0.1 password = sesame open"},
		{"nobody there", "postgres://app:sesame@127.0.0.1:1/app?sslmode=disable"},
		{"nobody there, keywords", "host=127.0.0.1 port=1 user=app password=sesame sslmode=disable"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := localpg.Start(t.Context(), localpg.Config{DSN: test.dsn})
			if err == nil {
				t.Fatal("no error")
			}
			for ; err != nil; err = errors.Unwrap(err) { // the causes hide it, too
				equal(t, "password in "+err.Error(), strings.Contains(err.Error(), "se"+"same"), false)
			}
		})
	}
}
