package network

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Redirect returns the DSN with another address and database; an empty string keeps the old one.
func Redirect(dsn, address, database string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" { // keywords and values: the last of two equal keywords counts
		if host, port, err := net.SplitHostPort(address); err == nil {
			dsn += fmt.Sprintf(" host='%s' port=%s", host, port)
		}
		if database != "" {
			dsn += " dbname='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database) + "'"
		}
		return dsn
	}
	query := u.Query()
	if address != "" {
		u.Host = address
		query.Del("host")
		query.Del("port")
	}
	if database != "" {
		u.Path, u.RawPath = "/"+database, ""
		query.Del("dbname")
		query.Del("database")
	}
	u.RawQuery = Encode(query)
	return u.String()
}

// Encode encodes a space as %20: pgx, like libpq, does not decode a plus as a space.
func Encode(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }
