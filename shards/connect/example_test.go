package connect_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// token stands for what asks a cloud for a password that is good for minutes.
func token(context.Context, shards.Host) (shards.Credentials, error) {
	return shards.Credentials{User: "app", Password: "not the right one"}, nil
}

// What is given the map connects with a token: create, verify, migrations, generators. A router takes such a function as
// its Config.Credentials too, for maps that it loads by itself.
func Example() {
	config, err := shards.Parse("kiloshard.yaml", []byte(strings.ReplaceAll(`
cluster: photos
shards: 4
epoch: 2026-01-01
hosts: [{name: pg-a, dsn: "postgres://ADDRESS/postgres?sslmode=disable"}]
placement: [{shards: 0-3, host: pg-a}]
`, "ADDRESS", address())), nil)
	if err != nil {
		panic(err)
	}
	m, err := config.Map()
	if err != nil {
		panic(err)
	}
	_, err = provision.Verify(context.Background(), m.WithCredentials(token))
	_, text, _ := strings.Cut(err.Error(), "FATAL: ")
	fmt.Println(text)
	// Output: password authentication failed for user "app" (SQLSTATE 28P01); expected the password command, or the program's own credentials, to return the password of user app
}

func ExampleOpen() {
	host := shards.Host{Name: "pg-a", DSN: server.DSN("postgres")}
	conn, err := connect.Open(context.Background(), host, func(c *pgx.ConnConfig) { c.RuntimeParams["application_name"] = "photos" })
	if err != nil {
		panic(err)
	}
	defer conn.Close(context.Background())
	var name string
	if err := conn.QueryRow(context.Background(), "show application_name").Scan(&name); err != nil {
		panic(err)
	}
	fmt.Println(name)
	// Output: photos
}

func address() string {
	config, err := pgx.ParseConfig(server.DSN("postgres"))
	if err != nil {
		panic("bad DSN")
	}
	return fmt.Sprintf("%s:%d", config.Host, config.Port)
}
