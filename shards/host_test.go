package shards_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

func TestNewHost(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) { return "p@ss", name == "PASSWORD" }
	h, err := shards.NewHost("old", "postgres://app:${PASSWORD}@10.0.0.1/app", lookup)
	if err != nil || h.ConnString() != "postgres://app:p%40ss@10.0.0.1/app" || h.Address() != "10.0.0.1/app" {
		t.Errorf("got %v, %v", h, err)
	}
	var field *shards.FieldError
	if _, err := shards.NewHost("old", "host=${NOTHING}", lookup); !errors.As(err, &field) || !strings.Contains(err.Error(), "variable NOTHING is not set") {
		t.Errorf("got %v", err)
	}
}

func TestHostAddress(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		dsn     string
		address string
	}{
		{"usual", "postgres://app:hunter2@10.0.0.1/app", "10.0.0.1/app"},
		{"long scheme", "postgresql://app:hunter2@pg-a.example:5433/app", "pg-a.example:5433/app"},
		{"parameters", "postgres://app:hunter2@pg-a/app?sslmode=disable&password=hunter2", "pg-a/app"},
		{"no user", "postgres://pg-a/app", "pg-a/app"},
		{"no database", "postgres://app:hunter2@pg-a", "pg-a"},
		{"two hosts", "postgres://app:hunter2@pg-a:5432,pg-b:5433/app", "pg-a:5432,pg-b:5433/app"},
		{"IPv6", "postgres://app:hunter2@[::1]:5432/app", "[::1]:5432/app"},
		{"an @ that is not escaped", "postgres://app:hunter2@@pg-a/app", ""},
		{"a slash that is not escaped", "postgres://app:hun/ter2@pg-a/app", ""},
		{"a question mark that is not escaped", "postgres://app:12?hunter2@pg-a/app", "pg-a/app"},
		{"a hash that is not escaped", "postgres://app:12#hunter2@pg-a/app", "pg-a/app"},
		{"socket", "postgres://app:hunter2@/app?host=/tmp", "/tmp/app"},
		{"socket and port", "postgres://app:hunter2@/app?host=/run/postgresql&port=5433", "/run/postgresql:5433/app"},
		{"socket in the place of the host", "postgres://app:hunter2@%2Frun%2Fpostgresql:5432/app", "/run/postgresql:5432/app"},
		{"hosts in the query", "postgres:///app?host=pg-a,pg-b&port=5432,5433", "pg-a:5432,pg-b:5433/app"},
		{"a host that the query overrides", "postgres://app:hunter2@pg-x/app?host=pg-a", "pg-a/app"},
		{"service in a URL", "postgres:///?service=photos", "service:photos"},
		{"keywords and values", "host=pg-a password=hunter2", "pg-a"},
		{"more keywords", "host=pg-a port=5433 dbname=app user=app password='hunter2 host=x'", "pg-a:5433/app"},
		{"keywords of a socket", "host = /run/postgresql dbname = 'app' password = hunter2", "/run/postgresql/app"},
		{"keywords of two hosts", "host=pg-a,::1 port=5432,5433 dbname=app", "pg-a:5432,[::1]:5433/app"},
		{"service", "service=photos password=hunter2", "service:photos"},
		{"no host", "dbname=app password=hunter2", ""},
		{"a host that cannot be one", "host='pg-a hunter2'", ""},
		{"other scheme", "mysql://app:hunter2@pg-a/app", ""},
		{"nonsense", "hunter2", ""},
		{"empty", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := shards.Host{Name: "pg-a", DSN: test.dsn}
			if got := h.Address(); got != test.address {
				t.Fatalf("got %q, expected %q", got, test.address)
			}
			if h.ConnString() != test.dsn {
				t.Errorf("ConnString: got %q", h.ConnString())
			}
		})
	}
}

func TestHostConnString(t *testing.T) {
	t.Parallel()
	const odd = "hunter2/@:?#[] %&+é" // of PG_A_PASSWORD
	tests := []struct {
		name string
		dsn  string
		conn string
	}{
		{"nothing to fill in", "postgres://app:x@h/app", "postgres://app:x@h/app"},
		{"password", "postgres://app:${PG_A_PASSWORD}@h/app", "postgres://app:hunter2%2F%40%3A%3F%23%5B%5D%20%25&+%C3%A9@h/app"},
		{"user and password", "postgresql://${PG_B_PASSWORD}:${PG_B_PASSWORD}@h", "postgresql://hunter2:hunter2@h"},
		{"empty password", "postgres://app:${EMPTY}@h/app", "postgres://app:@h/app"},
		{"host", "postgres://app@${PG_HOST}/app", "postgres://app@10.0.0.3/app"},
		{"parameter, as it is", "postgres://h/app?password=${PG_A_PASSWORD}&user=a@b", "postgres://h/app?password=" + odd + "&user=a@b"},
		{"keywords and values, as they are", "host=h password='${PG_A_PASSWORD}'", "host=h password='" + odd + "'"},
		{"all of it, as it is", "${PG_A_DSN}", "postgres://app:hunter2%2F@10.0.0.1/app"},
		{"dollars", "postgres://a$b:$$${PG_B_PASSWORD}$@h/$app$$", "postgres://a$b:$$hunter2$@h/$app$$"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, strings.Replace(document, `"postgres://app:${PG_B_PASSWORD}@10.0.0.2/app"`, "'"+strings.ReplaceAll(test.dsn, "'", "''")+"'", 1))
			if h := c.Hosts[1]; h.ConnString() != test.conn || h.DSN != test.dsn {
				t.Fatalf("got %q of %q, expected %q", h.ConnString(), h.DSN, test.conn)
			}
		})
	}
	h := parse(t, document).Hosts[0]
	h.DSN = "postgres://other/app"
	if got := h.ConnString(); got != h.DSN {
		t.Errorf("after the DSN is set in Go: got %q", got)
	}
	if got := (shards.Host{DSN: "host=${PG_HOST}"}).ConnString(); got != "host=${PG_HOST}" {
		t.Errorf("in a host made in Go: got %q", got)
	}
}

// Every password comes out of the URL as it went in.
func TestPasswordRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.String().Draw(t, "password")
		lookup := func(string) (string, bool) { return password, true }
		c, err := shards.Parse("k.yaml", []byte(document), lookup)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(c.Hosts[0].ConnString())
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := u.User.Password(); got != password || u.Host != "10.0.0.1" || u.Path != "/app" || u.User.Username() != "app" {
			t.Fatalf("%q became %q in %v", password, got, u)
		}
	})
}

// holder keeps what it holds where package fmt cannot call its methods.
type holder struct {
	host   shards.Host
	config shards.Config
	m      *shards.Map
}

func TestPasswordsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	literal := newConfig(8)
	literal.Hosts[0].Replicas = []string{"postgres://app:hunter2@10.0.0.9/app"}
	literal.Hosts[0].Direct = "postgres://app:hunter2@10.0.0.8/app"
	literalMap, err := literal.Map()
	if err != nil {
		t.Fatal(err)
	}
	loaded := parse(t, document)
	loadedMap, err := loaded.Map()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		value any
	}{
		{"host", literal.Hosts[0]},
		{"pointer to host", &literal.Hosts[0]},
		{"hosts", literal.Hosts},
		{"hosts by name", map[string]shards.Host{"pg-a": literal.Hosts[0]}},
		{"config", literal},
		{"pointer to config", &literal},
		{"placement", literal.Placement[0]},
		{"map", literalMap},
		{"map's config", literalMap.Config()},
		{"pointer in an unexported field", holder{m: literalMap}},
		{"loaded host", loaded.Hosts[0]},
		{"loaded config", loaded},
		{"loaded map", loadedMap},
		{"loaded, in unexported fields", holder{host: loaded.Hosts[0], config: loaded, m: loadedMap}},
		{"pointer to loaded, in unexported fields", &holder{host: loaded.Hosts[0], config: loaded}},
		{"error", &shards.HostError{Host: literal.Hosts[0].Name, Err: fmt.Errorf("%v", literal.Hosts[0])}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T", "%20v"} {
				text := fmt.Sprintf(verb, test.value)
				if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
					t.Errorf("%s prints %s", verb, text)
				}
			}
			for name, text := range logged(test.value) {
				if strings.Contains(text, "hunter2") {
					t.Errorf("the %s handler logs %s", name, text)
				}
			}
			text, err := json.Marshal(test.value)
			if err != nil || strings.Contains(string(text), "hunter2") {
				t.Errorf("json.Marshal: %s, %v", text, err)
			}
		})
	}
}

// logged returns what slog's handlers write of a value.
func logged(value any) map[string]string {
	var text, asJSON bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("here", "value", value, slog.Group("group", "value", value))
	slog.New(slog.NewJSONHandler(&asJSON, nil)).Info("here", "value", value, slog.Group("group", "value", value))
	return map[string]string{"text": text.String(), "JSON": asJSON.String()}
}

func TestHostText(t *testing.T) {
	t.Parallel()
	h := shards.Host{Name: "pg-a", DSN: "postgres://app:hunter2@10.0.0.1/app"}
	tests := []struct {
		name string
		got  string
		want string
	}{
		{"v", fmt.Sprintf("%v", h), "pg-a (10.0.0.1/app)"},
		{"s", fmt.Sprintf("%s", h), "pg-a (10.0.0.1/app)"},
		{"q", fmt.Sprintf("%q", h), `"pg-a (10.0.0.1/app)"`},
		{"width", fmt.Sprintf("%-21v|", h), "pg-a (10.0.0.1/app)  |"},
		{"Go", fmt.Sprintf("%#v", h), "shards.Host{pg-a (10.0.0.1/app)}"},
		{"no URL", fmt.Sprint(shards.Host{Name: "pg-a", DSN: "password=hunter2"}), "pg-a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.got != test.want {
				t.Fatalf("got %s, expected %s", test.got, test.want)
			}
		})
	}
}
