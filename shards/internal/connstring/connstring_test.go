package connstring_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards/internal/connstring"
)

func TestVariables(t *testing.T) {
	t.Parallel()
	values := map[string]string{"PASSWORD": "p@ss", "HOST": "10.0.0.1"}
	lookup := func(name string) (string, bool) { value, ok := values[name]; return value, ok }
	const written = "postgres://app:${PASSWORD}@${HOST}/app"
	var v connstring.Variables
	if err := v.Add(written, lookup); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		if got := v.Fill(written); got != want {
			t.Errorf("got %s, expected %s", got, want)
		}
	}
	check("postgres://app:p%40ss@10.0.0.1/app")
	values["PASSWORD"] = "new"
	check("postgres://app:new@10.0.0.1/app")
	delete(values, "HOST")
	check("postgres://app:p%40ss@10.0.0.1/app")
	if got := v.Fill("host=${HOST}"); got != "host=${HOST}" {
		t.Errorf("a text that was not added: got %s", got)
	}
	if text := fmt.Sprintf("%v %+v %#v", v, v, v); strings.Contains(text, "10.0.0.1") {
		t.Errorf("printed the values: %s", text)
	}
}

func TestVariablesRefuse(t *testing.T) {
	t.Parallel()
	empty := func(string) (string, bool) { return "", true }
	for _, c := range []struct {
		text   string
		lookup func(string) (string, bool)
		want   string
	}{
		{"${A}", nil, "variable A is not set"},
		{"${A}", empty, "empty once its variables are filled in"},
		{"host=${a b}", empty, "a ${ that names no variable"},
	} {
		var v connstring.Variables
		if err := v.Add(c.text, c.lookup); err == nil || err.Found != c.want {
			t.Errorf("%q: got %v, expected %s", c.text, err, c.want)
		}
	}
}

func TestLocalize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, dir string
		settings  map[string]string
		want      string
	}{
		{"host=a sslrootcert=ca.pem", "/etc/kiloshard", nil, "host='a' sslrootcert='/etc/kiloshard/ca.pem'"},
		{"host=a sslrootcert=ca.pem", "", nil, "host=a sslrootcert=ca.pem"},
		{"host=a sslrootcert=system", "/etc", nil, "host=a sslrootcert=system"},
		{"host=a sslmode=prefer", "/etc", map[string]string{"sslmode": "verify-full", "sslcert": "c.pem"}, "host='a' sslmode='verify-full' sslcert='/etc/c.pem'"},
		{"host='a", "/etc", map[string]string{"sslmode": "verify-full"}, "host='a"},
	} {
		if got := connstring.Localize(c.text, c.settings, c.dir); got != c.want {
			t.Errorf("%q: got %s, expected %s", c.text, got, c.want)
		}
	}
}
