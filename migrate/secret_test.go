package migrate_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestNothingThatHoldsAConfigPrintsAPassword prints configs, and what holds them, in every way.
func TestNothingThatHoldsAConfigPrintsAPassword(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-never-shown"
	c := shardtest.MapConfig(2, []shards.Host{{Name: "pg-a", DSN: "postgres://app:" + secret + "@127.0.0.1:1/app", Replicas: []string{"host=x password=" + secret}}})
	c.PasswordCommand = []string{"token", "--key", secret}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	store := shards.Store{Kind: shards.StorePostgres, DSN: "postgres://app:" + secret + "@127.0.0.1:1/app", Password: secret, Local: map[string]string{"sslpassword": secret}}
	remote := shards.Config{Cluster: "photos", Store: store, PasswordCommand: c.PasswordCommand}
	create := provision.CreateConfig{Map: m}
	type holder struct {
		Config shards.Config
		m      *shards.Map
	}
	for _, value := range []any{
		c, &c, m, remote, &remote, store, c.Hosts, c.Hosts[0], m.Hosts(),
		[]shards.Config{c},
		map[string]shards.Config{"x": c},
		create, &create,
		provision.UpgradeConfig{CreateConfig: create},
		provision.AdvanceConfig{Map: m},
		migrate.Config{Map: m},
		mapstore.Entry{Map: m},
		mapstore.Change{Config: c},
		holder{c, m},
		&holder{c, m},
		provision.HostStatus{Host: c.Hosts[0]},
		shards.Credentials{Password: secret},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%T %[1]v"} {
			if text := fmt.Sprintf(verb, value); strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%s of a %T shows it: %.300s", verb, value, text)
			}
		}
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "value", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "value", value)
		if strings.Contains(out.String(), secret) {
			t.Errorf("slog of a %T shows it: %.300s", value, out.String())
		}
	}
}
