package provision_test

import (
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/internal/pgtest"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// TestSwappedCounters replaces a generator's table by a view while Counters waits for it.
func TestSwappedCounters(t *testing.T) {
	t.Parallel()
	_, m := withGenerators(t, []shards.Generator{{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-b"}}})
	dsn := ""
	for _, h := range m.Hosts() {
		if h.Name == "pg-b" {
			dsn = h.ConnString()
		}
	}
	var counters []provision.CounterStatus
	taken := pgtest.Swap(t, dsn, "kiloshard", "counters", "name text, value bigint", "select 'invoice'::text as name, loot.took()::bigint as value", func() {
		counters = provision.Counters(t.Context(), m)
	})
	if taken != "" {
		t.Errorf("code of somebody else ran with the rights of %s", taken)
	}
	if err := counters[0].Servers[0].Err; err == nil || !strings.Contains(err.Error(), "expected a plain table") {
		t.Errorf("got %v", err)
	}
}
