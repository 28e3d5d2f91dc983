package provision_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// tableSequence is a sequence of a table's own in shard 2, as Instagram has them.
const tableSequence = "create sequence shard_00002.photos_id_seq maxvalue 1125899906842623"

// leadBy makes a sequence lead the clock, as after a clock that was ahead and then corrected.
func leadBy(t *testing.T, host shards.Host, sequence, by string) {
	t.Helper()
	on(t, host, fmt.Sprintf("select setval('%s', (extract(epoch from clock_timestamp() + interval '%s' - '2026-01-01Z') * 1024000)::bigint)", sequence, by))
}

func TestLeads(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Hosts()[0], tableSequence)
	on(t, m.Hosts()[0], "create sequence shard_00002.other_seq")
	on(t, m.Hosts()[0], "select setval('shard_00002.other_seq', 4611686018427387904)")
	leadBy(t, m.Hosts()[0], "shard_00002.photos_id_seq", "1 hour")
	leadBy(t, m.Hosts()[0], "shard_00003.next_id_seq", "10 minutes")
	leadBy(t, m.Hosts()[0], "shard_00004.next_id_seq", "20 milliseconds") // load alone can cause this
	leadBy(t, m.Hosts()[0], "shard_00005.next_id_seq", "-1 hour")

	statuses := provision.Status(t.Context(), m)
	found := statuses[0].Leads
	if len(found) != 2 || len(statuses[1].Leads) != 0 {
		t.Fatalf("got %v and %v, expected two leads on pg-a", found, statuses[1].Leads)
	}
	for i, want := range []provision.Lead{{"shard_00002", "photos_id_seq", time.Hour}, {"shard_00003", "next_id_seq", 10 * time.Minute}} {
		got := found[i]
		if got.Schema != want.Schema || got.Sequence != want.Sequence || got.By > want.By || got.By < want.By-5*time.Minute {
			t.Errorf("got %+v, expected %+v or a little less", got, want)
		}
	}
	differences, err := provision.Verify(t.Context(), m)
	if err != nil || len(differences) != 2 {
		t.Fatalf("got %v, %v, expected two differences", differences, err)
	}
	for i, want := range []string{"photos_id_seq leads the clock by ", "next_id_seq leads the clock by "} {
		if d := differences[i]; d.Kind != provision.KindLead || !strings.HasPrefix(d.Found, want) {
			t.Errorf("got %s, expected: %s", d, want)
		}
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	m := created(t, 16)
	on(t, m.Hosts()[0], tableSequence)
	on(t, m.Hosts()[0], "create sequence shard_00002.other_seq")
	leadBy(t, m.Hosts()[0], "shard_00003.next_id_seq", "3 hours")
	before := on(t, m.Hosts()[0], "select last_value from shard_00003.next_id_seq")
	beyond := time.Now().Add(time.Hour)
	cfg := provision.AdvanceConfig{Map: m, Host: "pg-a", Beyond: beyond, LockWait: 10 * time.Millisecond}

	// Advance waits for a transaction that has used a sequence.
	busy, err := pgx.Connect(t.Context(), m.Hosts()[0].ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close(context.Background()) }()
	if _, err := busy.Exec(t.Context(), "begin; select shard_00006.next_id()"); err != nil {
		t.Fatal(err)
	}
	moved, err := provision.Advance(t.Context(), cfg)
	var partial *shards.PartialError
	var e *pgconn.PgError
	if !errors.As(err, &partial) || partial.Done.Len() != 7 || len(partial.Failed) != 1 || !errors.As(err, &e) || e.Code != "55P03" {
		t.Errorf("got %v, expected shard 6 to be locked", err)
	}
	if len(moved) != 7 { // shards 0, 1, 2 twice, 4, 5, 7
		t.Errorf("got %+v, expected 7 sequences", moved)
	}
	if _, err := busy.Exec(t.Context(), "commit"); err != nil {
		t.Fatal(err)
	}
	if moved, err = provision.Advance(t.Context(), cfg); err != nil || len(moved) != 1 || moved[0].Shard != 6 || time.Since(moved[0].Was).Abs() > time.Minute {
		t.Errorf("got %+v, %v, expected shard 6 alone", moved, err)
	}
	if after := on(t, m.Hosts()[0], "select last_value from shard_00003.next_id_seq"); after[0] != before[0] {
		t.Errorf("a sequence that was beyond the time was moved from %s to %s", before, after)
	}
	if other := on(t, m.Hosts()[0], "select last_value from shard_00002.other_seq"); other[0] != "1" {
		t.Errorf("a sequence that makes no IDs was moved to %s", other)
	}
	for _, n := range []shards.Number{0, 1, 2, 4, 5, 6, 7} {
		id := on(t, m.Hosts()[0], fmt.Sprintf("select %s.next_id()", m.Schema(n)))
		later := on(t, m.Hosts()[0], fmt.Sprintf("select kiloshard.id_time(%s) > '%s' and kiloshard.id_time(%s) < '%s'", id[0],
			beyond.Truncate(time.Millisecond).Format(time.RFC3339Nano), id[0], beyond.Add(time.Minute).Format(time.RFC3339Nano)))
		if later[0] != "t" {
			t.Errorf("shard %d: ID %s is not right beyond %s", n, id[0], beyond)
		}
	}
	if moved, err = provision.Advance(t.Context(), cfg); err != nil || len(moved) != 0 {
		t.Errorf("again: got %+v, %v, expected nothing to do", moved, err)
	}
	cfg.Beyond = time.Date(2090, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err = provision.Advance(t.Context(), cfg); !errors.As(err, &e) || e.Code != "22023" {
		t.Errorf("past the layout: got %v", err)
	}
	if remaining := on(t, m.Hosts()[1], "select sum(last_value) from pg_sequences where sequencename = 'next_id_seq'"); remaining[0] != "" {
		t.Errorf("sequences of the other host were moved: %s", remaining)
	}
}
