package provision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// TestPromotedStandby splits a host as Instagram did: it promotes the physical standby and places half of the shards
// there. Create refuses before the promotion, and if both names mean one server.
func TestPromotedStandby(t *testing.T) {
	t.Parallel()
	primary := shardtest.OwnServer(t)
	mapOf := func(hosts ...shards.Host) *shards.Map {
		c := shardtest.MapConfig(8, hosts)
		c.Generators = []shards.Generator{{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-a"}}}
		return build(t, c)
	}
	create(t, mapOf(shards.Host{Name: "pg-a", DSN: primary.DSN("postgres")}))
	standby := shardtest.Standby(t, primary, "standby")

	m := mapOf(shards.Host{Name: "pg-a", DSN: primary.DSN("postgres")}, shards.Host{Name: "pg-b", DSN: standby.DSN("postgres")})
	refused := func(m *shards.Map, want string) {
		t.Helper()
		_, err := provision.Create(t.Context(), provision.CreateConfig{Map: m})
		var field *shards.FieldError
		if !errors.As(err, &field) || field.Found != want {
			t.Errorf("create: got %v, expected %q", err, want)
		}
		if _, err := provision.Verify(t.Context(), m); !errors.As(err, &field) || field.Found != want {
			t.Errorf("verify: got %v, expected %q", err, want)
		}
	}
	refused(m, "host pg-b is a standby with the data of host pg-a")
	if on(t, m.Hosts()[1], "select pg_promote()")[0] != "t" {
		t.Fatal("the standby was not promoted")
	}
	report := create(t, m)
	if report.Created.Len() != 0 || report.Existed.Len() != 8 {
		t.Errorf("got %+v, expected all shards to be there", report)
	}
	const advice = "nobody reads a copy; drop or rename it on pg-"
	if got := fmt.Sprint(report.Copies); !strings.Contains(got, "pg-a has copies of shards whose home is pg-b (4-7): "+advice+"a") ||
		!strings.Contains(got, "pg-b has copies of shards whose home is pg-a (0-3): "+advice+"b") || len(report.Copies) != 2 {
		t.Errorf("got %s", got)
	}
	// Each of the two hosts has one report about the shards of the other.
	differences, err := provision.Verify(t.Context(), m)
	found := map[provision.Kind]int{}
	for _, d := range differences {
		found[d.Kind]++
	}
	if err != nil || len(differences) != 9 || found[provision.KindTwice] != 8 || found[provision.KindGenerator] != 1 {
		t.Errorf("got %v, %v, expected 8 shards on two hosts, and a generator", differences, err)
	}
	on(t, m.Hosts()[1], "drop function kiloshard.next_invoice_id(), kiloshard.next_invoice_ids(int)")
	for n := range m.All().All() {
		on(t, m.Hosts()[1-m.HostIndex(n)], "drop schema "+m.Schema(n)+" cascade")
	}
	checkComplete(t, m)

	// With another address it is still the same database.
	c := m.Config()
	c.Hosts[0].DSN = strings.Replace(standby.DSN("postgres"), "127.0.0.1", "localhost", 1)
	refused(build(t, c), "hosts pg-a and pg-b are the same database")
}
