package localpg

import (
	"crypto/rand"
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// errBadDSN has no cause on purpose: what the parsers say of a malformed DSN may have a part of its password in it.
var errBadDSN = errors.New("DSN: neither a postgres:// URL nor keywords and values as Postgres knows them " +
	"(in a URL, a password's special characters are written as %xx; the DSN is not shown, for it may hold a password)")

// connString is a connection string that Postgres's parsers take, a URL or keywords and values.
type connString string

// parseDSN checks a connection string of the caller's.
func parseDSN(dsn string) (connString, *pgx.ConnConfig, error) {
	c := connString(strings.TrimSpace(dsn))
	if c.isURL() {
		if _, err := url.Parse(string(c)); err != nil {
			return "", nil, errBadDSN
		}
	}
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

func (c connString) isURL() bool {
	return strings.HasPrefix(string(c), "postgres://") || strings.HasPrefix(string(c), "postgresql://")
}

// database returns the connection string for another database.
func (c connString) database(name string) string {
	if !c.isURL() {
		return c.keyword("dbname", name)
	}
	u, err := url.Parse(string(c))
	if err != nil {
		panic("bug: localpg: a connection string was not checked")
	}
	u.Path, u.RawPath = "/"+name, ""
	if q := u.Query(); q.Has("dbname") || q.Has("database") {
		q.Del("dbname")
		q.Del("database")
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// keyword returns keywords and values with another one: of a keyword given twice the last one counts.
func (c connString) keyword(name, value string) string {
	return string(c) + " " + name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// AsRole returns a DSN with another role, and its password.
func AsRole(dsn, role, password string) string {
	c := connString(dsn)
	if !c.isURL() {
		return connString(c.keyword("user", role)).keyword("password", password)
	}
	u, err := url.Parse(dsn)
	if err != nil {
		panic("bug: localpg: a DSN was not checked")
	}
	u.User = url.UserPassword(role, password)
	if q := u.Query(); q.Has("user") || q.Has("password") {
		q.Del("user")
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	return u.String()
}
