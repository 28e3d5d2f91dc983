package metrics_test

import (
	"testing"

	"github.com/kiloshard/kiloshard/router/metrics"
	"github.com/kiloshard/kiloshard/shards"
)

// TestLeads has two sequences of one host lead the clock, as a clock that stepped back leaves them.
func TestLeads(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, 1100, nil) // more than are asked for at once
	b.registry.MustRegister(metrics.Leads(b.Router))
	for _, host := range []string{"pg-a", "pg-b"} {
		if n := b.value(t, "sequences_leading", "host", host); n != 0 {
			t.Errorf("%s: %v sequences lead, expected none", host, n)
		}
	}
	if n := b.value(t, "sequence_lead_seconds"); n != -1 {
		t.Errorf("a lead of %v s, expected no such series", n)
	}
	const set = `select pg_catalog.setval(pg_catalog.current_schema() || '.next_id_seq',
		(extract(epoch from clock_timestamp() + $1::text::interval - '2026-01-01Z') * 1024000)::bigint)`
	for n, by := range map[int]string{3: "10 minutes", 540: "1 hour"} {
		if _, err := b.shard(t, n).Exec(ctx, set, by); err != nil {
			t.Fatal(err)
		}
	}
	leading := b.value(t, "sequences_leading", "host", "pg-a")
	for range 10 { // a busy host does not say in time
		if leading >= 0 {
			break
		}
		leading = b.value(t, "sequences_leading", "host", "pg-a")
	}
	if leading != 2 {
		t.Errorf("pg-a: %v sequences lead, expected 2", leading)
	}
	if s := b.value(t, "sequence_lead_seconds", "host", "pg-a", "sequence", "shard_00540.next_id_seq", "cluster", b.Map().Config().Cluster); s < 3000 || s > 3600 {
		t.Errorf("pg-a: a lead of %v s, expected an hour", s)
	}
	if n := b.value(t, "sequences_leading", "host", "pg-b"); n != 0 {
		t.Errorf("pg-b: %v sequences lead, expected none", n)
	}
}

// TestLeadsOfAHostThatIsDown says that nothing is known of it.
func TestLeadsOfAHostThatIsDown(t *testing.T) {
	t.Parallel()
	b, _ := setup(t, 8, func(c *shards.Config) { c.Hosts[1].DSN = "postgres://app@127.0.0.1:1/app" })
	b.registry.MustRegister(metrics.Leads(b.Router))
	for host, unknown := range map[string]float64{"pg-a": 0, "pg-b": 1} {
		if got := b.value(t, "sequences_unknown", "host", host); got != unknown {
			t.Errorf("%s: unknown is %v, expected %v", host, got, unknown)
		}
	}
	if n := b.value(t, "sequences_leading", "host", "pg-b"); n != -1 {
		t.Errorf("%v sequences of a host that is down lead", n)
	}
}
