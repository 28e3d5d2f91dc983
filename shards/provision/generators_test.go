package provision_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
	"github.com/kiloshard/kiloshard/shards/shardtest"
)

// allKinds are generators of every kind on pg-a and pg-b.
func allKinds() []shards.Generator {
	return []shards.Generator{
		{Kind: shards.Tickets, Names: []string{"photo", "account"}, Hosts: []string{"pg-b", "pg-a"}, Of: 3},
		{Kind: shards.Interleaved, Names: []string{"order"}, Of: 64},
		{Kind: shards.CentralSequence, Names: []string{"message"}, Hosts: []string{"pg-a"}},
		{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-b"}},
		{Kind: shards.UUIDv4, Names: []string{"session"}},
		{Kind: shards.UUIDv7, Names: []string{"event"}},
	}
}

// withGenerators returns a map of 8 shards on two empty hosts.
func withGenerators(t *testing.T, generators []shards.Generator) (shards.Config, *shards.Map) {
	t.Helper()
	c := shardtest.MapConfig(8, shardtest.Hosts(t, 2))
	c.Generators = generators
	return c, build(t, c)
}

func TestCreateMakesGenerators(t *testing.T) {
	t.Parallel()
	_, m := withGenerators(t, allKinds())
	report := create(t, m)
	want := []string{"message on pg-a", "photo on pg-a", "account on pg-a", "photo on pg-b", "account on pg-b", "invoice on pg-b"}
	slices.Sort(want)
	if slices.Sort(report.Generators); !slices.Equal(report.Generators, want) {
		t.Errorf("made %q, expected %q", report.Generators, want)
	}
	checkComplete(t, m)

	hosts := m.Hosts()
	for _, test := range []struct {
		host  shards.Host
		query string
		want  []string
	}{
		{hosts[0], "select kiloshard.next_photo_ids(3)", []string{"2", "5", "8"}}, // pg-a is the second server
		{hosts[1], "select kiloshard.next_photo_ids(3)", []string{"1", "4", "7"}},
		{hosts[1], "select kiloshard.next_account_id()", []string{"1"}},
		{hosts[0], "select shard_00003.next_order_ids(2)", []string{"3", "67"}},
		{hosts[0], "select shard_00000.next_order_id()", []string{"64"}},
		{hosts[0], "select kiloshard.next_message_ids(2)", []string{"1", "2"}},
		{hosts[1], "select kiloshard.next_invoice_id()", []string{"1"}},
		{hosts[1], "select kiloshard.next_invoice_ids(3)", []string{"2", "3", "4"}},
		{hosts[1], "select kiloshard.next_invoice_id()", []string{"5"}},
		{hosts[0], "select substr(shard_00001.next_session_id()::text, 15, 1)", []string{"4"}},
		{hosts[0], "select substr(shard_00001.next_event_id()::text, 15, 1)", []string{"7"}},
	} {
		if got := on(t, test.host, test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s on %s: got %q, expected %q", test.query, test.host.Name, got, test.want)
		}
	}

	// A second Create changes nothing.
	if again := create(t, m); again.Created.Len() != 0 || len(again.Generators) != 0 {
		t.Errorf("a second create made %s and %q", again.Created, again.Generators)
	}
	if got := on(t, hosts[1], "select kiloshard.next_invoice_id()"); !slices.Equal(got, []string{"6"}) {
		t.Errorf("the invoice after a second create is %q, expected 6", got)
	}
}

// TestCreateAddsGenerators adds generators to existing shards.
func TestCreateAddsGenerators(t *testing.T) {
	t.Parallel()
	c, m := withGenerators(t, nil)
	create(t, m)
	c.Generators = allKinds()
	m = build(t, c)
	if report := create(t, m); report.Completed.Len() != 8 || report.Existed.Len() != 0 {
		t.Errorf("completed %s of 8 shards", report.Completed)
	}
	checkComplete(t, m)
}

func TestTimeInUUIDv7(t *testing.T) {
	t.Parallel()
	_, m := withGenerators(t, allKinds())
	create(t, m)
	const query = `
		with made as (select shard_00001.next_event_ids(2000) as id),
		read as (select id, ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint as ms from made)
		select count(distinct id) || ' ' || bool_and(abs(extract(epoch from clock_timestamp()) * 1000 - ms) < 2000) || ' '
			|| bool_and(substr(id::text, 20, 1) ~ '[89ab]') || ' ' || (max(ms) - min(ms) < 2000)
		from read`
	if got := on(t, m.Hosts()[0], query); !slices.Equal(got, []string{"2000 true true true"}) {
		t.Errorf("got %q", got)
	}
}

// TestCreateRefusesOtherNumbers changes the order of ticket servers and the number of classes, which must never change.
func TestCreateRefusesOtherNumbers(t *testing.T) {
	t.Parallel()
	c, m := withGenerators(t, allKinds())
	create(t, m)
	for _, test := range []struct {
		name   string
		change func(g []shards.Generator)
		want   string
	}{
		{
			"ticket servers in another order", func(g []shards.Generator) { g[0].Hosts = []string{"pg-a", "pg-b"} },
			"sequence kiloshard.next_photo_id_seq on pg-a makes 2 and then every 3.; expected 1 and then every 3.",
		},
		{
			"more residue classes", func(g []shards.Generator) { g[1].Of = 128 },
			"sequence shard_00000.next_order_id_seq on pg-a makes 64 and then every 64.; expected 128",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := c
			c.Generators = allKinds()
			test.change(c.Generators)
			_, err := provision.Create(t.Context(), provision.CreateConfig{Map: build(t, c)})
			var e *provision.ProgressionError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, expected %s", err, test.want)
			}
		})
	}
}

func TestVerifyGenerators(t *testing.T) {
	t.Parallel()
	_, m := withGenerators(t, allKinds())
	create(t, m)
	hosts := m.Hosts()
	on(t, hosts[0], "alter sequence kiloshard.next_photo_id_seq cache 10")
	on(t, hosts[0], "alter sequence shard_00002.next_order_id_seq increment 32")
	on(t, hosts[0], "drop function shard_00001.next_event_ids(int)")
	on(t, hosts[1], "create or replace function kiloshard.next_message_id() returns bigint language sql as 'select 1::bigint'") // pg-b has no generator of this name
	on(t, hosts[1], "create or replace function kiloshard.next_account_id() returns bigint language sql as 'select 1::bigint'")
	differences, err := provision.Verify(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range differences {
		got = append(got, fmt.Sprintf("%s %s %s %.40s", d.Kind, d.Host, d.Schema, d.Found))
	}
	want := []string{
		"generator pg-a kiloshard next_photo_id_seq has type bigint, start",
		"generator pg-b kiloshard next_account_id with 0 parameters is sel",
		"generator pg-a shard_00001 next_event_ids with 1 parameter is missi",
		"generator pg-a shard_00002 next_order_id_seq has type bigint, start",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCounters(t *testing.T) {
	t.Parallel()
	c, m := withGenerators(t, allKinds())
	create(t, m)
	on(t, m.Hosts()[0], "select kiloshard.next_photo_ids(10)") // 2 to 29
	on(t, m.Hosts()[1], "select kiloshard.next_photo_ids(4)")  // 1 to 10
	on(t, m.Hosts()[1], "select kiloshard.next_invoice_ids(7)")

	var got []string
	for _, c := range provision.Counters(t.Context(), m) {
		line := fmt.Sprintf("%s %s %d:", c.Name, c.Kind, c.Apart())
		for _, s := range c.Servers {
			line += fmt.Sprintf(" %s %d %v", s.Host, s.Last, s.Err)
		}
		got = append(got, line)
	}
	want := []string{
		"photo tickets 19: pg-b 10 <nil> pg-a 29 <nil>",
		"account tickets 0: pg-b 0 <nil> pg-a 0 <nil>",
		"message sequence 0: pg-a 0 <nil>",
		"invoice row 0: pg-b 7 <nil>",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	c.Hosts = slices.Clone(c.Hosts)
	c.Hosts[0].DSN = "postgres://nobody@127.0.0.1:1/none"
	statuses := provision.Counters(t.Context(), build(t, c))
	if s := statuses[0]; s.Servers[0].Err != nil || s.Servers[1].Err == nil || s.Apart() != 0 {
		t.Errorf("with pg-a down: %+v", s)
	}
}

// Generators continue from the counters of an old system.
func TestGeneratorsFrom(t *testing.T) {
	t.Parallel()
	const old = 72157623227190423
	_, m := withGenerators(t, []shards.Generator{
		{Kind: shards.Tickets, Names: []string{"photo"}, Hosts: []string{"pg-a", "pg-b"}, From: old},
		{Kind: shards.Interleaved, Names: []string{"order"}, Of: 64, From: 1000},
		{Kind: shards.CentralSequence, Names: []string{"message"}, Hosts: []string{"pg-a"}, From: 1000},
		{Kind: shards.Row, Names: []string{"invoice"}, Hosts: []string{"pg-b"}, From: 1000},
	})
	create(t, m)
	checkComplete(t, m)
	hosts := m.Hosts()
	for _, c := range provision.Counters(t.Context(), m) {
		if c.Apart() > 1 {
			t.Errorf("%s: %d apart before the first number, expected 0 or 1", c.Name, c.Apart())
		}
	}
	for _, test := range []struct {
		host  shards.Host
		query string
		want  []string
	}{
		{hosts[0], "select kiloshard.next_photo_ids(2)", []string{"72157623227190423", "72157623227190425"}},
		{hosts[1], "select kiloshard.next_photo_ids(2)", []string{"72157623227190424", "72157623227190426"}},
		{hosts[0], "select shard_00001.next_order_id()", []string{"1025"}},
		{hosts[0], "select kiloshard.next_message_id()", []string{"1000"}},
		{hosts[1], "select kiloshard.next_invoice_ids(2)", []string{"1000", "1001"}},
	} {
		if got := on(t, test.host, test.query); !slices.Equal(got, test.want) {
			t.Errorf("%s on %s: got %q, expected %q", test.query, test.host.Name, got, test.want)
		}
	}
	if again := create(t, m); again.Created.Len() != 0 || len(again.Generators) != 0 {
		t.Errorf("created %v again", again.Generators)
	}
	checkComplete(t, m)

	// With one value on both servers, one of them makes the numbers of the other from now on.
	for _, host := range hosts {
		on(t, host, "select setval('kiloshard.next_photo_id_seq', 72157623227190500)")
	}
	differences, err := provision.Verify(t.Context(), m)
	if err != nil || len(differences) != 1 || differences[0].Host != "pg-a" ||
		!strings.Contains(differences[0].String(), "next_photo_id_seq is at 72157623227190500, of another server's numbers") ||
		!strings.Contains(differences[0].String(), "setval('kiloshard.next_photo_id_seq', 72157623227190501)") {
		t.Errorf("got %+v, %v, expected the sequence of pg-a", differences, err)
	}
}
