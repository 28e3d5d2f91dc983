package connect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/connect"
)

// elsewhere is an address that leads to this machine, and that nothing knows to do so.
const elsewhere = "0.0.0.0"

// A server on another machine must verify itself, unless the DSN says otherwise.
func TestDefaultMode(t *testing.T) {
	t.Parallel()
	otherwise := []string{"without sslmode a DSN means verify-full", "sslmode=require", "sslmode=disable"}
	dsn, without := role(t, server, "default_mode"), role(t, plain, "default_mode")
	services := file(t, "[src]\nsslmode=disable\n")
	for _, test := range []struct {
		name string
		dsn  string
		want []string // in the error; none if it works
	}{
		{"no TLS", without(sentinel, elsewhere, ""), append(otherwise, "server refused TLS connection")},
		{"an empty mode", without(sentinel, elsewhere, "sslmode="), otherwise},
		{"one of two addresses", without(sentinel, "127.0.0.1:1,"+elsewhere, ""), otherwise},
		{"the loopback one of two addresses", without(sentinel, elsewhere+":1,127.0.0.1", ""), otherwise},
		{"a certificate that does not verify", dsn(sentinel, elsewhere, ""), append(otherwise, "x509: ")},
		{"disable", without(sentinel, elsewhere, "sslmode=disable"), nil},
		{"prefer", without(sentinel, elsewhere, "sslmode=prefer"), nil},
		{"require", dsn(sentinel, elsewhere, "sslmode=require"), nil},
		{"a service", without(sentinel, elsewhere, "service=src&servicefile="+services), nil},
		{"loopback", without(sentinel, "127.0.0.1", ""), nil},
		{"a loopback address of IPv6", without(sentinel, "[::ffff:127.0.0.1]", ""), nil},
		{"localhost", without(sentinel, "LocalHost", ""), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn, err := connect.Open(t.Context(), hostOf(test.dsn), nil)
			if err == nil {
				defer conn.Close(t.Context())
			}
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e := (*connect.Error)(nil); !errors.As(err, &e) {
				t.Fatalf("got %v, expected a connect.Error", err)
			}
			checkText(t, err.Error(), test.want...)
		})
	}
	t.Run("a pool", func(t *testing.T) {
		t.Parallel()
		login, pool := poolOf(t, hostOf(without(sentinel, elsewhere, "")), nil)
		if err := acquire(t, login, pool); err == nil {
			t.Error("a pool without TLS: expected an error")
		} else {
			checkText(t, err.Error(), otherwise...)
		}
	})
}

// PGSSLMODE chooses too, and a program that is started has the same mode.
func TestDefaultModeOfEnvironment(t *testing.T) {
	const there = "host=10.0.0.1 user=app dbname=app"
	for _, test := range []struct{ dsn, variable, want string }{
		{there, "", "PGSSLMODE=verify-full"},
		{there, "require", "PGSSLMODE=require"},
		{there + " sslmode=disable", "", "PGSSLMODE=disable"},
		{"host=::1 user=app dbname=app", "", ""},
		{"host=/tmp user=app dbname=app", "", ""},
	} {
		t.Setenv("PGSSLMODE", test.variable)
		environment, err := connect.Environment(t.Context(), hostOf(test.dsn))
		if err != nil {
			t.Errorf("%s: %v", test.dsn, err)
		}
		got := ""
		if i := slices.IndexFunc(environment, func(v string) bool { return strings.HasPrefix(v, "PGSSLMODE=") }); i >= 0 {
			got = environment[i]
		}
		if got != test.want {
			t.Errorf("%s with PGSSLMODE=%s: got %q, expected %q", test.dsn, test.variable, got, test.want)
		}
	}
	t.Setenv("PGSSLMODE", "disable")
	dsn := role(t, plain, "mode_of_environment")
	conn, err := connect.Open(t.Context(), hostOf(dsn(sentinel, elsewhere, "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
}
