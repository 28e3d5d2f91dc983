package connect_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// A database that is not UTF8 is refused by name, with the commands that make one which is.
func TestEncodingIsUTF8(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		t.Run(encoding, func(t *testing.T) {
			name := "encoding-" + strings.ToLower(encoding)
			sql(t, server, `create database "`+name+`" template template0 encoding '`+encoding+`' locale 'C'`)
			defer sql(t, server, `drop database "`+name+`"`)
			host := hostOf(server.DSN(name))
			ways := map[string]func() error{
				"Open":      func() error { _, err := connect.Open(t.Context(), host, nil); return err },
				"OpenPlain": func() error { _, err := connect.OpenPlain(t.Context(), host, nil); return err },
				"pool":      func() error { return pingPool(t, host) },
			}
			for way, open := range ways {
				err := open()
				var wrong *connect.EncodingError
				want := "database " + name + " has encoding " + encoding + ", expected UTF8: if there is nothing in it yet, dropdb " + name +
					" && createdb -O postgres -T template0 -E UTF8 --locale=C " + name
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SQLSTATE") {
					t.Errorf("%s: got %v, expected %s", way, err, want)
				}
			}
		})
	}
}

func pingPool(t *testing.T, host shards.Host) error {
	t.Helper()
	login, config, err := connect.ForPool(host)
	if err != nil {
		return err
	}
	login.Attend(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		return err
	}
	defer pool.Close()
	return pool.Ping(t.Context())
}

// Sessions of ours are in UTF8 also where role or database say otherwise.
func TestClientEncoding(t *testing.T) {
	t.Parallel()
	dsn := role(t, server, "in_latin1")
	sql(t, server, "alter role in_latin1 set client_encoding = 'LATIN1'")
	conn, err := connect.Open(t.Context(), hostOf(dsn(sentinel, "", "sslmode=disable&client_encoding=LATIN1")), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if got := conn.PgConn().ParameterStatus("client_encoding"); got != "UTF8" {
		t.Errorf("client_encoding is %s, expected UTF8", got)
	}
}
