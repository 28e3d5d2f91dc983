package network

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestRedirected(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, dsn, address, database string
		want                         string // user, password, host, port, database and application_name
	}{
		{"both", "postgres://ann:s%2Fx@db:5433/app?sslmode=disable&application_name=me", "127.0.0.1:7", "clone", "ann s/x 127.0.0.1 7 clone me"},
		{"address", "postgres://ann:pw@db:5433/app?application_name=me", "127.0.0.1:7", "", "ann pw 127.0.0.1 7 app me"},
		{"database", "postgresql://ann:pw@db:5433/app?application_name=me", "", "clone", "ann pw db 5433 clone me"},
		{"spaces", "postgres://ann:pw@db:5433/app?application_name=it%20is%2Bme", "127.0.0.1:7", "", "ann pw 127.0.0.1 7 app it is+me"},
		{"all in the query", "postgres:///?user=ann&password=pw&host=db&port=5433&dbname=app&application_name=me", "127.0.0.1:7", "clone", "ann pw 127.0.0.1 7 clone me"},
		{"a strange name", "postgres://ann:pw@db/app?application_name=me", "[::1]:7", "a/b'c ?", "ann pw ::1 7 a/b'c ? me"},
		{"keywords", "host=db port=5433 user=ann password='p w' dbname=app application_name=me", "127.0.0.1:7", "clone", "ann p w 127.0.0.1 7 clone me"},
		{"keywords, database", "host=db port=5433 user=ann password=pw dbname=app application_name=me", "", `a'b\c`, `ann pw db 5433 a'b\c me`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg, err := pgx.ParseConfig(Redirect(test.dsn, test.address, test.database))
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(cfg.User, " ", cfg.Password, " ", cfg.Host, " ", cfg.Port, " ", cfg.Database, " ", cfg.RuntimeParams["application_name"])
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
