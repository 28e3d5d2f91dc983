package connect_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// A host at one of its addresses connects there and nowhere else, and all else in its DSN stays.
func TestAt(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://app:p%40ss@10.0.0.1,10.0.0.2:5433/photos?sslmode=disable",
		"postgres://app:p%40ss@/photos?host=10.0.0.1,10.0.0.2&port=5432,5433&sslmode=disable",
		"postgres://app:p%40ss@[::1]:5432/photos?sslmode=disable&hos%74=10.0.0.1",
		"postgres://app:p%40ss@10.0.0.1?sslmode=disable&dbname=photos",
		"host=10.0.0.1,10.0.0.2 port=5432,5433 user=app password='p@ss' dbname=photos sslmode=disable",
		"postgres://10.0.0.1/photos?sslmode=disable&user=app&password=p%40ss",
	} {
		for _, address := range []string{"10.0.0.2", "::1", "db.example.com", "/run/postgres ql"} {
			config, err := pgconn.ParseConfig(connect.At(shards.Host{Name: "pg-a", DSN: dsn}, address, 6000).ConnString())
			if err != nil {
				t.Errorf("%s at %s: %v", dsn, address, err)
				continue
			}
			if config.Host != address || config.Port != 6000 || len(config.Fallbacks) > 0 || config.User != "app" || config.Password != "p@ss" || config.Database != "photos" {
				t.Errorf("%s at %s: leads %s@%s:%d/%s and %d more", dsn, address, config.User, config.Host, config.Port, config.Database, len(config.Fallbacks))
			}
		}
	}
}

// A function for credentials may print the host: it gets no password of a variable.
func TestCredentialsFuncGetsNoPassword(t *testing.T) {
	t.Parallel()
	const document = "cluster: photos\nshards: 1\nepoch: 2026-01-01\nplacement: [{shards: 0, host: pg-a}]\nhosts:\n  - {name: pg-a, dsn: \"postgres://app:${PASSWORD}@127.0.0.1:1/app?sslmode=disable\"}\n"
	c, err := shards.Parse("k.yaml", []byte(document), func(string) (string, bool) { return "hunter2", true })
	if err != nil {
		t.Fatal(err)
	}
	shown, refused := "", errors.New("refused")
	host := c.Hosts[0].WithCredentials(func(_ context.Context, host shards.Host) (shards.Credentials, error) {
		shown = fmt.Sprintf("%+v %s", struct{ host shards.Host }{host}, host.ConnString())
		return shards.Credentials{}, refused
	})
	if _, err := connect.Open(t.Context(), host, nil); !errors.Is(err, refused) || strings.Contains(shown, "hunter2") || !strings.Contains(shown, "app@127.0.0.1:1/app") {
		t.Errorf("%v: the function gets %s", err, shown)
	}
}
