package shards_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// A relative file in a DSN is beside the config.
func TestFilesAreBesideTheConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tests := []struct {
		name, dsn, want string
	}{
		{"URL", "postgres://app@h/app?sslmode=verify-full&sslrootcert=ca.pem", "postgres://app@h/app?sslmode=verify-full&sslrootcert=DIR%2Fca.pem"},
		{"all of them", "postgres://h?sslcert=a&sslkey=b%20c&passfile=d&servicefile=./e", "postgres://h/?sslcert=DIR%2Fa&sslkey=DIR%2Fb%20c&passfile=DIR%2Fd&servicefile=DIR%2Fe"},
		{"absolute", "postgres://h?sslrootcert=/etc/ca.pem", "postgres://h?sslrootcert=/etc/ca.pem"},
		{"the system's CAs", "postgres://h?sslrootcert=system", "postgres://h?sslrootcert=system"},
		{"in a password", "postgres://app:x?sslkey=y@h/app?sslcert=z", "postgres://app:x%3Fsslkey%3Dy@h/app?sslcert=DIR%2Fz"},
		{"nothing", "postgres://app@h/app", "postgres://app@h/app"},
		{"keywords and values", "host=h sslrootcert = ca.pem user=app", "host='h' sslrootcert='DIR/ca.pem' user='app'"},
		{"in quotes", `host=h sslrootcert='my \'ca' password='sslkey=x'`, `host='h' sslrootcert='DIR/my \'ca' password='sslkey=x'`},
		{"absolute keywords", "host=h sslrootcert=/etc/ca.pem", "host=h sslrootcert=/etc/ca.pem"},
		{"nonsense", "hunter2", "hunter2"},
	}
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
			text := strings.ReplaceAll(document, `"postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"`, "'"+strings.ReplaceAll(test.dsn, "'", "''")+"'")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := shards.Load(path, environment)
			if err != nil {
				t.Fatal(err)
			}
			encoded := dir
			if strings.HasPrefix(test.dsn, "postgres:") {
				encoded = strings.ReplaceAll(dir, "/", "%2F")
			}
			want := strings.ReplaceAll(test.want, "DIR%2F", encoded+"%2F")
			want = strings.ReplaceAll(want, "DIR", encoded)
			if got := c.Hosts[1].ConnString(); got != want {
				t.Errorf("got      %s\nexpected %s", got, want)
			}
			if c.Hosts[1].DSN != test.dsn {
				t.Errorf("as written: %s", c.Hosts[1].DSN)
			}
		})
	}
}

// A variable is looked up each time. If it is no longer set, its first value stays in use.
func TestVariablesAreReadAgain(t *testing.T) {
	t.Parallel()
	values := map[string]string{"PG_A_PASSWORD": "one", "PG_B_PASSWORD": "x"}
	c, err := shards.Parse("k.yaml", []byte(document), func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "two"} {
		values["PG_A_PASSWORD"] = want
		if got := c.Hosts[0].ConnString(); !strings.Contains(got, ":"+want+"@") {
			t.Errorf("got %s, expected %s in it", got, want)
		}
	}
	clear(values)
	if got := c.Hosts[0].ConnString(); !strings.Contains(got, ":one@") {
		t.Errorf("without the variable: got %s", got)
	}
}

// The variables of the store are looked up in the same way.
func TestVariablesOfTheStoreAreReadAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, document string
		text           func(shards.Store) string
	}{
		{"postgres", inPostgres, shards.Store.ConnString},
		{"etcd", inEtcd, shards.Store.PasswordText},
	} {
		value := "one"
		c, err := shards.Parse("k.yaml", []byte(test.document), func(string) (string, bool) { return value, value != "" })
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []struct{ to, want string }{{"one", "one"}, {"two", "two"}, {"", "one"}} {
			value = change.to
			if got := test.text(c.Store); !strings.Contains(got, change.want) {
				t.Errorf("%s: with the variable %q got %s", test.name, value, got)
			}
		}
	}
}

func TestMapWithCredentials(t *testing.T) {
	t.Parallel()
	m, err := newConfig(8).Map()
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("refused")
	with := m.WithCredentials(func(_ context.Context, host shards.Host) (shards.Credentials, error) {
		if host.Name != "pg-a" {
			return shards.Credentials{}, refused
		}
		return shards.Credentials{User: "app", Password: "hunter2"}, nil
	})
	got, err := with.Host(0).Credentials(t.Context())
	if err != nil || got.Password != "hunter2" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := with.Host(7).Credentials(t.Context()); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if got, err := m.Host(0).Credentials(t.Context()); err != nil || got != (shards.Credentials{}) || m.Host(0).HasCredentials() {
		t.Errorf("the map itself has got credentials: %v, %v", got, err)
	}
	if m.WithCredentials(nil) != m {
		t.Error("without a function it is another map")
	}
	again, err := with.Config().Map() // as when something in the map is changed
	if err != nil || !again.Host(0).HasCredentials() {
		t.Errorf("the map made of its config has none: %v", err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, value := range []any{got, &got, []shards.Credentials{got}, struct{ C shards.Credentials }{got}, with, again.Config()} {
			text := fmt.Sprintf(verb, value)
			if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
	for name, text := range logged(got) {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the %s handler logs %s", name, text)
		}
	}
	if text, err := json.Marshal(got); err != nil || string(text) != `{"user":"app"}` {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func TestPasswordCommand(t *testing.T) {
	t.Parallel()
	c := parse(t, document+"password_command: [sh, -c, 'echo \"$PGHOST\"', \"5432\"]\n")
	if got := fmt.Sprintf("%q", c.PasswordCommand); got != `["sh" "-c" "echo \"$PGHOST\"" "5432"]` {
		t.Errorf("got %s", got)
	}
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if back := parse(t, string(text)); !equalConfigs(back, c) {
		t.Errorf("got %v of\n%s", back, text)
	}
	remote := parse(t, inPostgres+"password_command: [./token]\n")
	if text, err = remote.YAML(); err != nil {
		t.Fatal(err)
	}
	if back := parse(t, string(text)); !equalConfigs(back, remote) || len(back.PasswordCommand) != 1 {
		t.Errorf("without a map: got %v of\n%s", back, text)
	}
	_, err = shards.Parse("k.yaml", []byte(document+"password_command: token --host x\n"), environment)
	if err == nil || !strings.Contains(err.Error(), "password_command: text; expected a program and its arguments") {
		t.Errorf("got %v", err)
	}
}
