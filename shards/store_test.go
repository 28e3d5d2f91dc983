package shards_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

// inPostgres and inEtcd are configs whose map is in a store, their line numbers for the tests below.
const (
	inPostgres = `cluster: photos
store: {kind: postgres, dsn: "postgres://kiloshard:${PG_A_PASSWORD}@10.0.0.9/kiloshard"}
migrations: ./migrations
`
	inEtcd = `cluster: photos
store:
  kind: etcd
  endpoints: ["https://10.0.0.8:2379", "https://10.0.0.9:2379"]
  user: kiloshard
  password: "${PG_A_PASSWORD}"
  ca: ca.pem
  cert: /etc/client.pem
  key: client.key
`
)

func TestStoreInPostgres(t *testing.T) {
	t.Parallel()
	c := parse(t, inPostgres)
	if !c.Remote() || c.Cluster != "photos" || c.Migrations != "./migrations" || c.Shards != 0 || c.SchemaPrefix != "" {
		t.Errorf("got %+v", c)
	}
	if got, want := c.Store.ConnString(), "postgres://kiloshard:hunter2%2F%40%3A%3F%23%5B%5D%20%25&+%C3%A9@10.0.0.9/kiloshard"; got != want {
		t.Errorf("got DSN %q, expected %q", got, want)
	}
	if got := c.Store.String(); got != "postgres 10.0.0.9/kiloshard" {
		t.Errorf("got %q", got)
	}
	if got := c.Store.Host().String(); got != "store (10.0.0.9/kiloshard)" {
		t.Errorf("as a host: got %q", got)
	}
	var e *shards.FieldError
	if _, err := c.Map(); !errors.As(err, &e) || err.Error() != "store.kind: postgres, which holds the map: this config has none; expected the config that mapstore loads from there" {
		t.Errorf("the map of it: got %v", err)
	}
}

// Files that the store's DSN names are beside the config, as those of hosts are.
func TestStoreFilesAreBesideTheConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	text := "cluster: photos\nstore: {kind: postgres, dsn: \"service=maps sslrootcert=ca.pem passfile=/etc/pgpass\"}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := shards.Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	want := "service='maps' sslrootcert='" + filepath.Join(filepath.Dir(path), "ca.pem") + "' passfile='/etc/pgpass'"
	if got := c.Store.Host().ConnString(); got != want || c.Store.ConnString() != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestStoreInEtcd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kiloshard.yaml")
	if err := os.WriteFile(path, []byte(inEtcd), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := shards.Load(path, environment)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Store
	if !c.Remote() || len(s.Endpoints) != 2 || s.Prefix != "" || s.User != "kiloshard" || s.PasswordText() != "hunter2/@:?#[] %&+é" {
		t.Errorf("got %+v", c)
	}
	if got, want := c.Path(s.CA), filepath.Join(filepath.Dir(path), "ca.pem"); got != want || c.Path(s.Cert) != "/etc/client.pem" || c.Path("") != "" {
		t.Errorf("got %q, expected %q; %q, %q", got, want, c.Path(s.Cert), c.Path(""))
	}
	if got, want := s.String(), "etcd https://10.0.0.8:2379,https://10.0.0.9:2379"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	postgres := func(old, new string) string { return strings.Replace(inPostgres, old, new, 1) }
	etcd := func(old, new string) string { return strings.Replace(inEtcd, old, new, 1) }
	const alone = "; expected cluster, store, migrations, password_command alone; kiloshard map edit changes the map, kiloshard map import copies one to the store"
	tests := []struct {
		name string
		text string
		err  string
	}{
		{"no cluster", postgres("cluster: photos", ""), "2: cluster: missing"},
		{"unknown kind", postgres("kind: postgres", "kind: floppy"), `2: store.kind: "floppy"; expected file, postgres or etcd`},
		{"unknown field", postgres("dsn:", "url:"), `2: store: unknown field "url"; expected one of kind, dsn, endpoints, prefix, user, password, ca, cert, key`},
		{"no DSN", "cluster: photos\nstore: {kind: postgres}\n", "2: store.dsn: missing; expected how to reach the control database"},
		{"a variable that is not set", postgres("PG_A_PASSWORD", "NOT_THERE"), "2: store.dsn: variable NOT_THERE is not set"},
		{"a DSN that is empty", postgres("postgres://kiloshard:${PG_A_PASSWORD}@10.0.0.9/kiloshard", "${EMPTY}"), "2: store.dsn: empty once its variables are filled in; expected how to reach the control database"},
		{"a field of etcd", postgres("dsn:", "user: u, dsn:"), "2: store.user: a field that postgres does not have; expected none"},
		{"hosts", postgres("migrations: ./migrations", "hosts: []"), "3: hosts: a part of the map, which is in the store (postgres)" + alone},
		{"the first of several", postgres("cluster: photos", "cluster: photos\nshards: 8\nversion: 3\nsearch_path:"), "2: shards: a part of the map"},
		{"a whole map", strings.Replace(document, "{kind: file}", `{kind: postgres, dsn: "host=a"}`, 1), "2: shards: a part of the map, which is in the store (postgres)" + alone},
		{"a DSN for a file", strings.Replace(document, "{kind: file}", `{kind: file, dsn: "host=a"}`, 1), "7: store.dsn: a field that file does not have"},
		{"endpoints for a file", strings.Replace(document, "{kind: file}", `{endpoints: ["http://a:1"]}`, 1), "7: store.endpoints: a field that file does not have"},

		{"a DSN for etcd", etcd("user: kiloshard", "dsn: x\n  user: kiloshard"), "5: store.dsn: a field that etcd does not have"},
		{"no endpoints", etcd(`["https://10.0.0.8:2379", "https://10.0.0.9:2379"]`, "[]"), "4: store.endpoints: none; expected a list of servers"},
		{"endpoint with a password", etcd("https://10.0.0.8", "https://root:hunter2@10.0.0.8"), "4: store.endpoints[0]: something that looks like a DSN; expected the URL of a server"},
		{"endpoint of nothing", etcd("https://10.0.0.8:2379", "ftp//x"), `4: store.endpoints[0]: "ftp//x"; expected the URL of a server`},
		{"endpoint without a scheme", etcd("https://10.0.0.8:2379", "10.0.0.8"), `4: store.endpoints[0]: "10.0.0.8"; expected the URL of a server`},
		{"certificates without TLS", strings.ReplaceAll(inEtcd, "https", "http"), "4: store.endpoints[0]: http://10.0.0.8:2379, which would send the password in clear text; expected https://"},
		{"one endpoint without TLS", etcd("https://10.0.0.9", "http://10.0.0.9"), "4: store.endpoints[1]: http://10.0.0.9:2379 after https://10.0.0.8:2379; expected http or https for all of them"},
		{"a password without a user", etcd("  user: kiloshard\n", ""), "5: store.password: a password without a user; expected both, or neither"},
		{"a user without a password", etcd("  password: \"${PG_A_PASSWORD}\"\n", ""), "5: store.user: a user without a password"},
		{"a key without a certificate", etcd("  cert: /etc/client.pem\n", ""), "8: store.key: a key without a cert"},
		{"a certificate without a key", etcd("  key: client.key\n", ""), "8: store.cert: a cert without a key"},
		{"an odd prefix", etcd("  user:", "  prefix: photos\n  user:"), `5: store.prefix: "photos"; expected what all keys begin with`},
		{"a password that is a number", etcd(`"${PG_A_PASSWORD}"`, "123456"), `6: store.password: a number; expected a password, such as "${ETCD_PASSWORD}"; in quotes`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := refused(t, test.text)
			if !strings.HasPrefix(err.Error(), "kiloshard.yaml:"+test.err) {
				t.Fatalf("got      %v\nexpected kiloshard.yaml:%s", err, test.err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
		})
	}
}

func TestStoreIsNeverPrinted(t *testing.T) {
	t.Parallel()
	literal := shards.Store{Kind: "postgres", DSN: "postgres://app:hunter2@10.0.0.9/app", Password: "hunter2"}
	etcd := shards.Store{Kind: "etcd", User: "root", Password: "hunter2"}
	bootstrap := parse(t, inPostgres)
	for name, value := range map[string]any{
		"store": literal, "pointer": &literal, "stores": []shards.Store{literal}, "etcd": etcd, "config": shards.Config{Store: literal},
		"loaded": bootstrap.Store, "loaded config": bootstrap, "loaded, in an unexported field": holder{config: bootstrap},
		"loaded of etcd, in an unexported field": holder{config: parse(t, inEtcd)},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%20v"} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("%s: %s prints %s", name, verb, text)
			}
		}
		for handler, text := range logged(value) {
			if strings.Contains(text, "hunter2") {
				t.Errorf("%s: the %s handler logs %s", name, handler, text)
			}
		}
	}
	if text := (shards.Store{Kind: "etcd", Endpoints: []string{"http://root:hunter2@a"}}).String(); strings.Contains(text, "hunter2") {
		t.Errorf("of an endpoint that is refused: %s", text)
	}
	if text, err := json.Marshal(shards.Config{Store: literal}); err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), `"store":{"kind":"postgres"}`) {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func TestYAMLOfBootstrap(t *testing.T) {
	t.Parallel()
	if text, err := parse(t, inPostgres).YAML(); err != nil || string(text) != inPostgres {
		t.Errorf("got %v\n%s", err, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[^\x00$]{1,8}`)
		c := shards.Config{Cluster: "photos", Migrations: rapid.SampledFrom([]string{"", "./m"}).Draw(t, "migrations")}
		if rapid.Bool().Draw(t, "etcd") {
			c.Store = shards.Store{Kind: "etcd", Endpoints: []string{"https://a.example:2379", "https://[::1]:2379"}, CA: rapid.SampledFrom([]string{"", "ca.pem", "a b", "~"}).Draw(t, "ca")}
			if rapid.Bool().Draw(t, "password") {
				c.Store.User, c.Store.Password = name.Draw(t, "user"), rapid.OneOf(name, rapid.Just("${PG_A_PASSWORD}")).Draw(t, "password")
			}
			c.Store.Prefix = rapid.SampledFrom([]string{"", "/a", "/a/b/"}).Draw(t, "prefix")
		} else {
			c.Store = shards.Store{Kind: "postgres", DSN: rapid.OneOf(name, rapid.Just("${PG_A_DSN}")).Draw(t, "dsn")}
		}
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		back, err := shards.Parse("k.yaml", text, environment)
		if err != nil {
			t.Fatalf("%v, of\n%s", err, text)
		}
		if back.Store.DSN != c.Store.DSN || back.Store.Password != c.Store.Password || back.Store.User != c.Store.User || back.Store.CA != c.Store.CA || back.Migrations != c.Migrations {
			t.Fatalf("of %v came %v by\n%s", c.Store, back.Store, text)
		}
		if again, err := back.YAML(); err != nil || string(again) != string(text) {
			t.Fatalf("%v:\n%s\nbecame\n%s", err, text, again)
		}
	})
}

func TestTemplateOfBootstrap(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"postgres", "etcd"} {
		text := string(shards.Template(shards.Config{Store: shards.Store{Kind: kind}}))
		c, err := shards.Parse("k.yaml", []byte(text), func(string) (string, bool) { return "x", true })
		if err != nil || !c.Remote() || c.Store.Kind != kind || c.Cluster != "photos" || c.Migrations != "./migrations" {
			t.Errorf("got %v, %v of\n%s", c, err, text)
		}
		for _, field := range []string{"cluster", "store", "migrations"} {
			before, _, ok := strings.Cut(text, "\n"+field+":")
			if lines := strings.Split(before, "\n"); !ok || !strings.HasPrefix(lines[len(lines)-1], "# ") {
				t.Errorf("no comment before %s in\n%s", field, text)
			}
		}
	}
}

// A map from a store is written as the store keeps it, so that writing it back adds no DSN of the store.
func TestSharedAndLocal(t *testing.T) {
	t.Parallel()
	c, local := parse(t, document), parse(t, inPostgres)
	shared := c.Shared()
	if shared.Migrations != "" || shared.Store.Kind != "" {
		t.Errorf("got %+v", shared)
	}
	joined := shared.WithLocal(local)
	if joined.Remote() || joined.Store.Kind != "postgres" || joined.Migrations != "./migrations" {
		t.Errorf("got %+v", joined)
	}
	m, err := joined.Map()
	if err != nil || m.Len() != 2048 || m.Config().Store.ConnString() != local.Store.ConnString() {
		t.Fatalf("got %v, %v", m, err)
	}
	text, err := joined.YAML()
	if err != nil || strings.Contains(string(text), "store") {
		t.Errorf("%v, in\n%s", err, text)
	}
	text, err = shared.YAML()
	if err != nil || strings.Contains(string(text), "migrations") {
		t.Errorf("%v, in\n%s", err, text)
	}
	back := parse(t, string(text))
	if again, err := back.Shared().YAML(); err != nil || string(again) != string(text) {
		t.Errorf("got\n%s\nexpected\n%s, %v", again, text, err)
	}
}

// TestEtcdPasswordsGoByTLS refuses to send a password in clear text to another machine.
func TestEtcdPasswordsGoByTLS(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]bool{
		"https://10.0.0.8:2379": true, "http://127.0.0.1:2379": true, "http://[::1]:2379": true, "http://localhost:2379": true,
		"http://10.0.0.8:2379": false, "http://localhost.evil:2379": false, "http://127.evil:2379": false,
	} {
		text := "cluster: photos\nstore: {kind: etcd, endpoints: [\"" + endpoint + "\"], user: kiloshard, password: secret}\n"
		_, err := shards.Parse("k.yaml", []byte(text), nil)
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "in clear text") {
			t.Errorf("%s: got %v", endpoint, err)
		}
	}
}

// Only kiloshard.yaml limits the DSNs from a store. The limits are read and written, and local settings override DSNs.
func TestOnlyTheFileLimitsTheStore(t *testing.T) {
	t.Parallel()
	text := "cluster: photos\nstore: {kind: postgres, dsn: \"postgres://10.0.0.9/kiloshard\", variables: [\"PG_*\"], hosts: [\"10.0.0.*\"], local: {passfile: \"pass\", sslmode: \"verify-full\", sslrootcert: \"ca.pem\"}}\n"
	c, err := shards.Parse("k.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.YAML(); err != nil || string(out) != text {
		t.Errorf("got %s, %v", out, err)
	}
	for dsn, want := range map[string]string{
		"postgres://app@10.0.0.1/app":                            "postgres://app@10.0.0.1/app?passfile=pass&sslmode=verify-full&sslrootcert=ca.pem",
		"postgres://app@10.0.0.1/app?sslmode=disable&dbname=app": "postgres://app@10.0.0.1/app?sslmode=verify-full&passfile=pass&sslrootcert=ca.pem",
		"host=10.0.0.1 sslmode=disable":                          "host='10.0.0.1' sslmode='verify-full' passfile='pass' sslrootcert='ca.pem'",
	} {
		h := shards.Config{Hosts: []shards.Host{{Name: "pg-a", DSN: dsn}}}.WithLocal(c).Hosts[0]
		if store, ok := h.Store(); h.ConnString() != want || !ok || store.Kind != "postgres" {
			t.Errorf("%s: got %s of store %s", dsn, h.ConnString(), store)
		}
	}
	file := strings.Replace(document, "{kind: file}", `{kind: file, variables: ["PG_*"]}`, 1)
	if _, err := shards.Parse("k.yaml", []byte(file), func(string) (string, bool) { return "x", true }); err == nil || !strings.Contains(err.Error(), "none of them") {
		t.Errorf("got %v", err)
	}
}
