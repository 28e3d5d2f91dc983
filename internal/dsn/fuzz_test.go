package dsn_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// FuzzParse checks that Parse accepts the texts that pgx can parse and no others, but for variables in the place of keywords;
// and that a DSN that is written again has the same settings, for Parse and for pgx.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"postgres://app:p%40ss@10.0.0.1:5433/photos?sslmode=verify%2Dfull", "postgres://a,[::1]:2,/x?port=3", "postgres://a,b?ssl=true&sslmode=allow&ssl=true", "postgres://:@:/?host=",
		"postgres:///?host=a,b&port=1", "postgres:///?port=5&user=&password=", "postgres://u@/?password=", "postgres://%2Frun:5/", "postgres://[fe80::1%25eth0]/", "postgres://a:%20/", "postgres:// a /", "postgres://a/?=b&=c",
		"host = a port= 5 user='' password='it\\'s' dbname=x database=y", "host=a\\ b sslmode=disable\\", "a b=c", "${X} host=a", "${X} =a", "${X}${Y}=a", "host=a ${X}", "x='", "x='\\", "user=", "\vhost=a\f", "", " ",
		"postgres://${A}:${B}@${C}:${D}/${E}?${F}=${G}", "postgres://u:%24%7BX%7D@a/", "postgres://a/%00", "host=a\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "service") || strings.Contains(text, "ssl") && strings.Contains(text, "/") && strings.Contains(text, "cert") {
			return // it may name a file
		}
		d, err := dsn.Parse(text)
		config, theirs := pgconn.ParseConfig(text)
		malformed := theirs != nil && strings.Contains(theirs.Error(), "failed to parse as")
		if _, opaque := d.Lookup(""); opaque && !d.IsURL() {
			malformed = false
		}
		if (err != nil) != malformed {
			t.Fatalf("%q: %v, and pgx says %v", text, err, theirs)
		}
		if err != nil {
			return
		}
		again := d.Format()
		back, err := dsn.Parse(again)
		if err != nil || !maps.Equal(effective(back), effective(d)) {
			t.Fatalf("%q became %q: %v, got %q, expected %q", text, again, err, effective(back), effective(d))
		}
		if theirs != nil {
			return
		}
		other, err := pgconn.ParseConfig(again)
		if err != nil || !same(config, other) {
			t.Errorf("%q became %q: %v, got %+v, expected %+v", text, again, err, other, config)
		}
		for key, got := range map[string]string{"user": config.User, "password": config.Password, "dbname": config.Database, "require_auth": config.RequireAuth} {
			if want := d.Get(key); want != "" && got != want {
				t.Errorf("%q: pgx reads %s %q, not %q", text, key, got, want)
			}
		}
	})
}

func same(a, b *pgconn.Config) bool {
	if a.Host != b.Host || a.Port != b.Port || a.User != b.User || a.Password != b.Password || a.Database != b.Database || (a.TLSConfig == nil) != (b.TLSConfig == nil) ||
		a.ConnectTimeout != b.ConnectTimeout || !maps.Equal(a.RuntimeParams, b.RuntimeParams) || len(a.Fallbacks) != len(b.Fallbacks) {
		return false
	}
	for i, f := range a.Fallbacks {
		if g := b.Fallbacks[i]; f.Host != g.Host || f.Port != g.Port || (f.TLSConfig == nil) != (g.TLSConfig == nil) {
			return false
		}
	}
	return true
}
