package connect_test

import (
	"errors"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
)

// none is what it says of a client's certificate if we have none.
const none = " sslcert='/nonexistent'"

// However a DSN is written, libpq elsewhere checks as much as we do.
func TestSecure(t *testing.T) {
	t.Parallel()
	ca := file(t, string(authority.PEM))
	services := file(t, "[src]\nhost=10.0.0.1\nsslmode=verify-full\nsslrootcert="+ca+"\n")
	full := "sslmode='verify-full' sslrootcert='" + ca + "'" + none
	for _, test := range []struct {
		name, dsn string
		release   int
		want      string
	}{
		{"URL", "postgres://10.0.0.1/?sslmode=verify-full&sslrootcert=" + ca, 18, full},
		{"percent-encoded", "postgres://10.0.0.1/?sslmode=verify%2Dfull&%73slrootcert=" + ca, 15, full},
		{"keywords", "host=10.0.0.1 sslmode=verify-full sslrootcert=" + ca, 15, full},
		{"quotes", "host=10.0.0.1 sslmode='verify-full' sslrootcert='" + ca + "'", 15, full},
		{"spaces", "host=10.0.0.1 sslmode = verify-full\tsslrootcert =" + ca, 15, full},
		{"the last of two", "host=10.0.0.1 sslmode=disable sslrootcert=/x sslmode=verify-full sslrootcert=" + ca, 15, full},
		{"a service", "service=src servicefile=" + services, 15, full},
		{"a service and another mode", "service=src sslmode=verify-ca servicefile=" + services, 15, "sslmode='verify-ca' sslrootcert='" + ca + "'" + none},
		{"a socket", "host=/tmp sslmode=verify-full sslrootcert=" + ca, 15, full},
		{"require with a CA", "host=10.0.0.1 sslmode=require sslrootcert=" + ca, 15, "sslmode='verify-ca' sslrootcert='" + ca + "'" + none},
		{"the system's CAs", "host=10.0.0.1 sslrootcert=system", 16, "sslmode='verify-full' sslrootcert='system'" + none},
		{"ssl of JDBC", "postgres://10.0.0.1/?ssl=true", 15, "sslmode='require'" + none},
		{"no mode", "host=10.0.0.1", 15, "sslmode='verify-full'" + none},
		{"no mode, and one address of this machine", "host=127.0.0.1,10.0.0.1", 15, "sslmode='verify-full'" + none},
		{"no mode on this machine", "host=127.0.0.1", 15, "sslmode='prefer'" + none},
		{"no mode, and a socket", "host=/tmp", 15, "sslmode='prefer'" + none},
		{"no password in clear", "host=10.0.0.1 sslmode=prefer connect_timeout=3", 16, "sslmode='prefer'" + none + " require_auth='!password,!md5' connect_timeout='3'"},
		{"allow", "host=10.0.0.1 sslmode=allow target_session_attrs=any", 15, "sslmode='allow'" + none + " target_session_attrs='any'"},
		{"disable", "host=10.0.0.1 sslmode=disable", 15, "sslmode='disable'"},
		{"what newer releases have", "host=10.0.0.1 sslmode=require sslsni=0 channel_binding=require require_auth=scram-sha-256 sslnegotiation=direct", 17, "sslmode='require'" + none + " sslsni='0' sslnegotiation='direct' channel_binding='require' require_auth='scram-sha-256'"},
		{"direct", "host=127.0.0.1 sslnegotiation=direct", 16, "sslmode='require'" + none + " require_auth='!password,!md5'"},
	} {
		got, err := connect.Secure(hostOf(test.dsn), test.release)
		if err != nil || got != test.want {
			t.Errorf("%s: got %s, %v, expected %s", test.name, got, err, test.want)
		}
	}
	var field *shards.FieldError
	if got, err := connect.Secure(hostOf("host=10.0.0.1 require_auth=scram-sha-256"), 15); !errors.As(err, &field) {
		t.Errorf("require_auth on 15: got %s, %v", got, err)
	}
}

// The environment counts where the DSN and its service are silent.
func TestSecureByEnvironment(t *testing.T) {
	ca := file(t, string(authority.PEM))
	services := file(t, "[src]\nsslmode=verify-ca\n")
	t.Setenv("PGSSLMODE", "verify-full")
	t.Setenv("PGSSLROOTCERT", ca)
	t.Setenv("PGSERVICEFILE", services)
	for dsn, want := range map[string]string{
		"host=10.0.0.1":                   "sslmode='verify-full' sslrootcert='" + ca + "'" + none,
		"host=10.0.0.1 sslmode=verify-ca": "sslmode='verify-ca' sslrootcert='" + ca + "'" + none,
		"host=10.0.0.1 service=src":       "sslmode='verify-ca' sslrootcert='" + ca + "'" + none,
	} {
		if got, err := connect.Secure(hostOf(dsn), 15); err != nil || got != want {
			t.Errorf("%s: got %s, %v, expected %s", dsn, got, err, want)
		}
	}
	t.Setenv("PGSERVICE", "src")
	if got, err := connect.Secure(hostOf("host=10.0.0.1"), 15); err != nil || got != "sslmode='verify-ca' sslrootcert='"+ca+"'"+none {
		t.Errorf("PGSERVICE: got %s, %v", got, err)
	}
}
