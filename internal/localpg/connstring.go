package localpg

import (
	"crypto/rand"
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// errBadDSN has no cause on purpose: what the parsers say of a malformed DSN may have a part of its password in it.
var errBadDSN = errors.New("DSN: neither a postgres:// URL nor keywords and values as Postgres knows them " +
	"(in a URL, a password's special characters are written as %xx; the DSN is not shown, for it may hold a password)")

// connString is a connection string that Postgres's parsers take, a URL or keywords and values.
type connString string

// parseDSN checks a connection string of the caller's.
func parseDSN(text string) (connString, *pgx.ConnConfig, error) {
	c := connString(strings.TrimSpace(text))
	config, err := pgx.ParseConfig(string(c))
	if err != nil {
		return "", nil, errBadDSN
	}
	return c, config, nil
}

func newPassword() string { return rand.Text() }

// ownConnString returns the connection string of a server that this package started, for the database that is always
// there. It names all that the environment would else have a say in.
func ownConnString(address, password string) connString {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, password),
		Host:     address,
		Path:     "/" + superuser,
		RawQuery: "sslmode=disable",
	}
	return connString(u.String())
}

// database returns the connection string for another database.
func (c connString) database(name string) string { return dsn.With(string(c), "dbname", name) }

// AsRole returns a DSN with another role, and its password.
func AsRole(text, role, password string) string {
	return dsn.With(text, "user", role, "password", password)
}
