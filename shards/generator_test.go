package shards_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/kiloshard/kiloshard/shards"
)

// withGenerators returns a config of 8 shards on pg-a and pg-b.
func withGenerators(generators ...shards.Generator) shards.Config {
	c := newConfig(8)
	c.Generators = generators
	return c
}

func TestProgression(t *testing.T) {
	t.Parallel()
	tickets := shards.Generator{Kind: shards.Tickets, Of: 3}
	ticketsFrom := shards.Generator{Kind: shards.Tickets, Of: 2, From: 72157623227190423}
	interleaved := shards.Generator{Kind: shards.Interleaved, Of: 64}
	for _, test := range []struct {
		name        string
		generator   shards.Generator
		i           int
		start, step int64
	}{
		{"the first of two servers, with room for a third", tickets, 0, 1, 3},
		{"the second", tickets, 1, 2, 3},
		{"shard 0 does not make 0", interleaved, 0, 64, 64},
		{"shard 1", interleaved, 1, 1, 64},
		{"shard 63", interleaved, 63, 63, 64},
		{"the first of two servers, from a number of its class", ticketsFrom, 0, 72157623227190423, 2},
		{"the second", ticketsFrom, 1, 72157623227190424, 2},
		{"shard 0 from 100", shards.Generator{Kind: shards.Interleaved, Of: 64, From: 100}, 0, 128, 64},
		{"shard 36 from 100", shards.Generator{Kind: shards.Interleaved, Of: 64, From: 100}, 36, 100, 64},
		{"shard 35 from 100", shards.Generator{Kind: shards.Interleaved, Of: 64, From: 100}, 35, 163, 64},
		{"a sequence from 1000", shards.Generator{Kind: shards.CentralSequence, From: 1000}, 0, 1000, 1},
		{"a sequence", shards.Generator{Kind: shards.CentralSequence}, 0, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if start, step := test.generator.Progression(test.i); start != test.start || step != test.step {
				t.Errorf("got %d and every %d., expected %d and every %d.", start, step, test.start, test.step)
			}
		})
	}
}

func TestGeneratorsAreChecked(t *testing.T) {
	t.Parallel()
	one, both := []string{"pg-a"}, []string{"pg-a", "pg-b"}
	for _, test := range []struct {
		name      string
		generator shards.Generator
		want      string
	}{
		{"no kind", shards.Generator{Names: []string{"a"}}, "generators[0].kind: missing; expected one of tickets, interleaved"},
		{"an unknown kind", shards.Generator{Kind: "snowflake", Names: []string{"a"}}, `generators[0].kind: "snowflake"; expected`},
		{"no names", shards.Generator{Kind: shards.UUIDv7}, "generators[0].names: none"},
		{"a name with a dash", shards.Generator{Kind: shards.UUIDv7, Names: []string{"a", "b-c"}}, `generators[0].names[1]: "b-c"`},
		{"a name twice", shards.Generator{Kind: shards.UUIDv7, Names: []string{"a", "a"}}, `generators[0].names[1]: "a", which generators[0] has already`},
		{"one ticket server", shards.Generator{Kind: shards.Tickets, Names: []string{"a"}, Hosts: one}, "generators[0].hosts: 1 hosts; expected two or more"},
		{"two hosts of a row", shards.Generator{Kind: shards.Row, Names: []string{"a"}, Hosts: both}, "generators[0].hosts: 2 hosts; expected the one host"},
		{"a host for what shards make", shards.Generator{Kind: shards.Interleaved, Names: []string{"a"}, Hosts: one}, "generators[0].hosts: 1 hosts; expected none"},
		{"an unknown host", shards.Generator{Kind: shards.Row, Names: []string{"a"}, Hosts: []string{"pg-x"}}, `generators[0].hosts[0]: "pg-x"; expected one of the hosts pg-a, pg-b`},
		{"a host twice", shards.Generator{Kind: shards.Tickets, Names: []string{"a"}, Hosts: []string{"pg-a", "pg-a"}}, `generators[0].hosts[1]: "pg-a" a second time`},
		{"fewer classes than servers", shards.Generator{Kind: shards.Tickets, Names: []string{"a"}, Hosts: both, Of: 1}, "generators[0].of: 1; expected 2"},
		{"fewer classes than shards", shards.Generator{Kind: shards.Interleaved, Names: []string{"a"}, Of: 7}, "generators[0].of: 7; expected 8"},
		{"a first number of UUIDs", shards.Generator{Kind: shards.UUIDv7, Names: []string{"a"}, From: 2}, "generators[0].from: 2; expected none"},
		{"a negative first number", shards.Generator{Kind: shards.Row, Names: []string{"a"}, Hosts: one, From: -1}, "generators[0].from: -1; expected the first number, 1 to"},
		{"classes where there are none", shards.Generator{Kind: shards.UUIDv4, Names: []string{"a"}, Of: 2}, "generators[0].of: 2; expected none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := withGenerators(test.generator).Map()
			var e *shards.FieldError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, expected %s", err, test.want)
			}
		})
	}
}

func TestForIDOf(t *testing.T) {
	t.Parallel()
	m, err := withGenerators(
		shards.Generator{Kind: shards.Interleaved, Names: []string{"order"}, Of: 64},
		shards.Generator{Kind: shards.Tickets, Names: []string{"photo"}, Hosts: []string{"pg-a", "pg-b"}},
		shards.Generator{Kind: shards.UUIDv4, Names: []string{"event"}},
	).Map()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		generator string
		id        shards.ID
		want      shards.Number
		err       error
	}{
		{"interleaved, shard 0", "order", 128, 0, nil},
		{"interleaved, shard 7", "order", 64*1000 + 7, 7, nil},
		{"interleaved, a shard that is not open yet", "order", 64 + 8, 0, shards.ErrNoShard},
		{"interleaved, a negative number", "order", -57, 0, shards.ErrNoShard},
		{"a ticket is a key", "photo", 21, 5, nil},
		{"a UUID's generator", "event", 21, 0, shards.ErrNoGenerator},
		{"no generator", "nobody", 21, 0, shards.ErrNoGenerator},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if n, err := m.ForIDOf(test.generator, test.id); n != test.want || !errors.Is(err, test.err) {
				t.Errorf("got shard %d, %v; expected %d, %v", n, err, test.want, test.err)
			}
		})
	}
}

// The hash must never change, since it says where rows are.
func TestForUUID(t *testing.T) {
	t.Parallel()
	m, err := newConfig(1024).Map()
	if err != nil {
		t.Fatal(err)
	}
	// The first is xxhash's own test vector for no bytes: 0xef46db3751d8e999.
	if n := m.ForBytes(nil); n != 0x199 {
		t.Errorf("no bytes are on shard %d, expected %d", n, 0x199)
	}
	seen := map[shards.Number]bool{}
	for i := range 20_000 {
		seen[m.ForUUID([16]byte{15: byte(i), 14: byte(i >> 8)})] = true
	}
	if len(seen) != m.Len() {
		t.Errorf("20,000 UUIDs lie on %d shards of %d", len(seen), m.Len())
	}
}
