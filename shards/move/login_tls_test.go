package move_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/dsn"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// However the source's DSN is written, the subscription has its sslmode: that of a setting in quotes, of a service, or of
// the environment, too.
func TestLoginHasTheModeOfTheDSN(t *testing.T) {
	config := shardtest.New(t, shardtest.Config{Shards: 16, Migrations: migrations}).Map.Config()
	source, err := pgx.ParseConfig(config.Hosts[0].ConnString())
	if err != nil {
		t.Fatal("a server's DSN cannot be parsed")
	}
	url := dsn.With(config.Hosts[0].ConnString(), "sslmode", "allow")
	words := func(port string) string {
		return dsn.New("host", source.Host, "port", port, "user", source.User, "password", source.Password, "dbname", source.Database).String()
	}
	port := url[strings.LastIndexByte(url, ':')+1:]
	port = port[:strings.IndexByte(port, '/')]
	file := filepath.Join(t.TempDir(), "services")
	service := "[src]\n" + strings.ReplaceAll(strings.ReplaceAll(words(port), "' ", "\n"), "'", "") + "\nsslmode=allow\n"
	if err := os.WriteFile(file, []byte(service), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct{ name, dsn, variable string }{
		{"URL", url, ""},
		{"percent-encoded", strings.Replace(url, "sslmode=allow", "sslmode=%61llow", 1), ""},
		{"keywords", words(port) + " sslmode=allow", ""},
		{"quotes", words(port) + " sslmode='allow'", ""},
		{"spaces", words(port) + " sslmode = allow", ""},
		{"service", "service=src servicefile=" + file, ""},
		{"environment", words(port), "allow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PGSSLMODE", test.variable)
			c := config
			c.Hosts = slices.Clone(config.Hosts)
			c.Hosts[0].DSN = test.dsn
			b := setupOn(t, c)
			b.cfg.Shards = shards.SetOf(shards.Number(i))
			var conninfo string
			b.cfg.Events = func(progress.Event) {
				if conninfo == "" {
					conninfo = subscriptions(t, b.m.Hosts()[1])
				}
			}
			if _, err := move.Run(t.Context(), b.cfg); err != nil {
				t.Fatal(err)
			}
			if d, err := dsn.Parse(conninfo); err != nil || d.Get("sslmode") != "allow" {
				t.Errorf("sslmode is %q", d.Get("sslmode"))
			}
		})
	}
}

// What is added to log in may not make the subscription check less than the DSN does.
func TestLoginIsNotWeaker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.m.Config()
	c.Hosts = slices.Clone(c.Hosts)
	c.Hosts[0].DSN = dsn.With(c.Hosts[0].ConnString(), "sslmode", "allow")
	b = setupOn(t, c)
	login := b.cfg.Login
	for _, weak := range []string{"sslmode=disable", "sslmode = 'disable'", "user=x sslmode=other"} {
		b.cfg.Login = login + " " + weak
		var field *shards.FieldError
		if _, err := move.Run(t.Context(), b.cfg); !errors.As(err, &field) || !strings.Contains(err.Error(), "which checks less than") {
			t.Errorf("%s: got %v", weak, err)
		}
	}
}

// subscriptions returns the connection strings of subscriptions in the host's database.
func subscriptions(t *testing.T, host shards.Host) (conninfo string) {
	conn, err := connectLater(host)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer conn.Close(context.Background())
	const query = `select coalesce(string_agg(subconninfo, ' '), '') from pg_subscription where subdbid = (select oid from pg_database where datname = current_database())`
	if err := conn.QueryRow(context.Background(), query).Scan(&conninfo); err != nil {
		t.Error(err)
	}
	return conninfo
}
