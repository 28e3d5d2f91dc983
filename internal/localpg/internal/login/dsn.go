// Package login connects to servers: with connection strings and passwords, and as soon as a server answers.
package login

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// Superuser is the only role of a server that localpg starts, and the name of a database that always exists.
const Superuser = "postgres"

// errBadDSN has no cause: the parsers' errors for a malformed DSN may contain a part of its password.
var errBadDSN = errors.New("DSN: neither a postgres:// URL nor keywords and values as Postgres knows them " +
	"(in a URL, a password's special characters are written as %xx; the DSN is not shown, for it may hold a password)")

// DSN is a connection string that pgx can parse, a URL or keywords and values.
type DSN string

// Parse checks a caller's connection string. No error contains a part of it.
func Parse(text string) (DSN, *pgx.ConnConfig, error) {
	d := DSN(strings.TrimSpace(text))
	config, err := pgx.ParseConfig(string(d))
	if err != nil {
		return "", nil, errBadDSN
	}
	return d, config, nil
}

// URL returns the DSN of a server without TLS. It names everything that the environment could otherwise decide.
func URL(address, user, password, database string) DSN {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(user, password),
		Host:     address,
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return DSN(u.String())
}

// Database returns the DSN of another database on the same server.
func (d DSN) Database(name string) string { return dsn.With(string(d), "dbname", name) }

// Connect connects without prepared statements.
func (d DSN) Connect(ctx context.Context) (*pgx.Conn, error) {
	_, config, err := Parse(string(d))
	if err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	return pgx.ConnectConfig(ctx, config)
}
