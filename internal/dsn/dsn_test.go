package dsn_test

import (
	"maps"
	"testing"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		text   string
		want   map[string]string // nil if it cannot be parsed
		format string
	}{
		{"a URL", "postgres://app:p%40ss@10.0.0.1:5433/photos?sslmode=verify%2Dfull", map[string]string{"user": "app", "password": "p@ss", "host": "10.0.0.1", "port": "5433", "dbname": "photos", "sslmode": "verify-full"}, "postgres://app:p%40ss@10.0.0.1:5433/photos?sslmode=verify-full"},
		{"keywords", `host = 10.0.0.1 password='it\'s' sslmode= verify-full`, map[string]string{"host": "10.0.0.1", "password": "it's", "sslmode": "verify-full"}, `host='10.0.0.1' password='it\'s' sslmode='verify-full'`},
		{"several addresses", "postgresql://a,[::1]:2/", map[string]string{"host": "a,::1", "port": ",2"}, "postgresql://a,[::1]:2/"},
		{"several hosts and one port", "postgres:///?host=a,b&port=1", map[string]string{"host": "a,b", "port": "1"}, "postgres:///?host=a%2Cb&port=1"},
		{"a socket", "postgres://%2Frun%2Fpg/app", map[string]string{"host": "/run/pg", "dbname": "app"}, "postgres://%2Frun%2Fpg/app"},
		{"the last of two", "postgres://a/one?dbname=two&database=three", map[string]string{"host": "a", "dbname": "three"}, "postgres://a/three"},
		{"variables", "postgres://app:${PW}@${HOST}/app?x=${X}y", map[string]string{"user": "app", "password": "${PW}", "host": "${HOST}", "dbname": "app", "x": "${X}y"}, "postgres://app:${PW}@${HOST}/app?x=${X}y"},
		{"a variable for keywords", "host=a ${MORE} user=b", map[string]string{"host": "a", "": "${MORE}", "user": "b"}, "host='a' ${MORE} user='b'"},
		{"ssl of JDBC", "postgres://a/?sslmode=disable&ssl=true", map[string]string{"host": "a", "sslmode": "require"}, "postgres://a/?sslmode=require"},
		{"ssl of JDBC before sslmode", "postgres://a/?ssl=true&sslmode=disable", map[string]string{"host": "a", "sslmode": "disable"}, "postgres://a/?sslmode=disable"},
		{"a password without user", "postgres:///?password=x", map[string]string{"password": "x"}, "postgres:///?password=x"},
		{"an @ in the query", "postgres://a?user=b@c", map[string]string{"user": "a?user=b", "host": "c"}, "postgres://a%3Fuser%3Db@c/"},
		{"nothing", "", map[string]string{}, ""},
		{"no keyword", "hunter2", nil, ""},
		{"a quote without end", "host='a", nil, ""},
		{"a space in a keyword", "a b=c", nil, ""},
		{"no hexadecimal", "postgres://a/%zz", nil, ""},
		{"two equals signs", "postgres://a/?x=y=z", nil, ""},
		{"no bracket", "postgres://[::1/", nil, ""},
	} {
		d, err := dsn.Parse(test.text)
		if (err == nil) != (test.want != nil) {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := effective(d); !maps.Equal(got, test.want) {
			t.Errorf("%s: got %q, expected %q", test.name, got, test.want)
		}
		if d.String() != test.text && err == nil || d.Format() != test.format {
			t.Errorf("%s: got %s and %s", test.name, d, d.Format())
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"postgres://a:1,b:2/app?sslmode=disable&x=y": "postgres://%2Frun%2Fa%20b:5/app?sslmode=verify-full&x=y",
		"sslmode=disable host=a sslmode='prefer'":    "host='/run/a b' sslmode='verify-full' port='5'",
		"postgres://a/%zz":                           "postgres://a/%zz",
	} {
		if got := dsn.With(text, "host", "/run/a b", "port", "5", "sslmode", "verify-full"); got != want {
			t.Errorf("%s: got %s, expected %s", text, got, want)
		}
	}
}

func effective(d dsn.DSN) map[string]string {
	values := map[string]string{}
	for _, s := range d.All() {
		values[s.Key] = s.Value
	}
	return values
}
