package metrics_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/shardtest"
	"github.com/kiloshard/kiloshard/sql"
)

// TestLeads has two sequences of one host lead the clock, as a clock that stepped back leaves them.
func TestLeads(t *testing.T) {
	t.Parallel()
	m := shardtest.New(t, shardtest.Config{Shards: 2*sql.LeadsBatch + 4}).Map // a host has more than are asked for at once
	b, ctx := open(t, router.Config{Map: m})
	b.registry.MustRegister(metrics.Leads(b.Router))
	for _, host := range []string{"pg-a", "pg-b"} {
		if n := b.told(t, "sequences_leading", "host", host); n != 0 {
			t.Errorf("%s: %v sequences lead, expected none", host, n)
		}
	}
	if n := b.value(t, "sequence_lead_seconds"); n != -1 {
		t.Errorf("a lead of %v s, expected no such series", n)
	}
	const set = `select pg_catalog.setval(pg_catalog.current_schema() || '.next_id_seq',
		(extract(epoch from clock_timestamp() + $1::text::interval - '2026-01-01Z') * 1024000)::bigint)`
	for n, by := range map[int]string{3: "10 minutes", sql.LeadsBatch + 1: "1 hour"} {
		if _, err := b.shard(t, n).Exec(ctx, set, by); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.told(t, "sequences_leading", "host", "pg-a"); n != 2 {
		t.Errorf("pg-a: %v sequences lead, expected 2", n)
	}
	if s := b.told(t, "sequence_lead_seconds", "host", "pg-a", "sequence", "shard_00501.next_id_seq", "cluster", b.Map().Config().Cluster); s < 3000 || s > 3600 {
		t.Errorf("pg-a: a lead of %v s, expected an hour", s)
	}
	if n := b.told(t, "sequences_leading", "host", "pg-b"); n != 0 {
		t.Errorf("pg-b: %v sequences lead, expected none", n)
	}
}

// told returns a value that a busy host may not tell at once.
func (b *bundle) told(t testing.TB, name string, labels ...string) (value float64) {
	t.Helper()
	for range 10 {
		if value = b.value(t, name, labels...); value != -1 {
			break
		}
	}
	return value
}

// TestLeadsOfAHostThatIsDown says that nothing is known of it.
func TestLeadsOfAHostThatIsDown(t *testing.T) {
	t.Parallel()
	b, _ := setup(t, 8, func(c *shards.Config) { c.Hosts[1].DSN = "postgres://app@127.0.0.1:1/app" })
	b.registry.MustRegister(metrics.Leads(b.Router))
	if n := b.told(t, "sequences_leading", "host", "pg-a"); n != 0 {
		t.Errorf("pg-a: %v sequences lead, expected none", n)
	}
	if n := b.value(t, "sequences_unknown", "host", "pg-b"); n != 1 {
		t.Errorf("pg-b: unknown is %v, expected 1", n)
	}
	if n := b.value(t, "sequences_leading", "host", "pg-b"); n != -1 {
		t.Errorf("%v sequences of a host that is down lead", n)
	}
}
