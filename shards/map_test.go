package shards_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/shards"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// newConfig returns a valid config of count shards, a third of them on pg-a and the rest on pg-b.
func newConfig(count int) shards.Config {
	third := shards.Number(count / 3)
	return shards.Config{
		Cluster: "photos",
		Shards:  count,
		Epoch:   epoch,
		Hosts: []shards.Host{
			{Name: "pg-a", DSN: "postgres://app:hunter2@10.0.0.1/app"},
			{Name: "pg-b", DSN: "postgres://app:hunter2@10.0.0.2/app", Weight: 2},
		},
		Placement: []shards.Placement{
			{Shards: shards.SetOfRanges(shards.Range{First: 0, Last: third}), Host: "pg-a"},
			{Shards: shards.SetOfRanges(shards.Range{First: third + 1, Last: shards.Number(count - 1)}), Host: "pg-b"},
		},
	}
}

func newMap(t *testing.T, count int) *shards.Map {
	t.Helper()
	m, err := newConfig(count).Map()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMapLookups(t *testing.T) {
	t.Parallel()
	m := newMap(t, 2048)
	if m.Len() != 2048 || m.All().String() != "0-2047" {
		t.Errorf("got %d shards, %s", m.Len(), m.All())
	}
	for n, has := range map[shards.Number]bool{-1: false, 0: true, 2047: true, 2048: false} {
		if m.Has(n) != has {
			t.Errorf("Has(%d): got %v", n, !has)
		}
	}
	if m.Schema(42) != "shard_00042" || m.Schema(2047) != "shard_02047" {
		t.Errorf("got schemas %q and %q", m.Schema(42), m.Schema(2047))
	}
	if m.Host(682).Name != "pg-a" || m.Host(683).Name != "pg-b" || m.HostIndex(683) != 1 {
		t.Errorf("got %v, %v, %d", m.Host(682), m.Host(683), m.HostIndex(683))
	}
	on := m.NumbersOn("pg-b")
	if len(on) != 2048-683 || on[0] != 683 || !slices.IsSorted(on) {
		t.Errorf("on pg-b: got %d shards from %d", len(on), on[0])
	}
	if on := m.NumbersOn("pg-c"); len(on) != 0 {
		t.Errorf("on a host that is not there: got %v", on)
	}
	if m.Layout() != shards.DefaultLayout || !m.Epoch().Equal(epoch) || len(m.Hosts()) != 2 {
		t.Errorf("got %v, %v, %v", m.Layout(), m.Epoch(), m.Hosts())
	}
}

func TestMapDefaults(t *testing.T) {
	t.Parallel()
	c := newConfig(8)
	c.Epoch = epoch.In(time.FixedZone("", 3600))
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	got := m.Config()
	if got.SchemaPrefix != "shard_" || got.Layout != shards.DefaultLayout || got.Strategy.By != "modulo" || got.Store.Kind != "file" {
		t.Errorf("got %+v", got)
	}
	if got.Hosts[0].Weight != 1 || got.Hosts[1].Weight != 2 {
		t.Errorf("got weights %d and %d, expected 1 and 2", got.Hosts[0].Weight, got.Hosts[1].Weight)
	}
	if got.Epoch != epoch {
		t.Errorf("got epoch %v, expected UTC", got.Epoch)
	}
	if c.Hosts[0].Weight != 0 {
		t.Error("Map changed the config that it was made of")
	}
}

func TestMapNeverChanges(t *testing.T) {
	t.Parallel()
	c := newConfig(8)
	c.SearchPath = []string{"extensions"}
	c.Hosts[0].Replicas = []string{"host=replica"}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	c.SearchPath[0], c.Hosts[0].Name, c.Hosts[0].Replicas[0], c.Placement[0].Host = "x", "x", "x", "x"
	got := m.Config()
	if got.SearchPath[0] != "extensions" || got.Hosts[0].Name != "pg-a" || got.Hosts[0].Replicas[0] != "host=replica" || got.Placement[0].Host != "pg-a" {
		t.Errorf("the map changed with the config that it was made of: %+v", got)
	}
}

func TestMapForKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		key   int64
		shard shards.Number
	}{
		{"zero", 0, 0},
		{"below the number of shards", 1341, 1341},
		{"Instagram's", 31341, 1341},
		{"the number of shards", 2000, 0},
		{"minus one", -1, 1999},
		{"minus the number of shards", -2000, 0},
		{"highest", math.MaxInt64, 1807},
		{"lowest", math.MinInt64, 192},
	}
	m := newMap(t, 2000)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if n, err := m.ForKey(test.key); err != nil || n != test.shard {
				t.Fatalf("got %d, %v, expected %d", n, err, test.shard)
			}
		})
	}
}

func TestMapForKeyIsInTheMap(t *testing.T) {
	t.Parallel()
	m := newMap(t, 77)
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Int64().Draw(t, "key")
		n, err := m.ForKey(key)
		if err != nil || !m.Has(n) || (key-int64(n))%77 != 0 && key > math.MinInt64+77 {
			t.Fatalf("key %d: got shard %d", key, n)
		}
	})
}

func TestMapForID(t *testing.T) {
	t.Parallel()
	id := func(p shards.Parts) shards.ID {
		id, err := shards.DefaultLayout.Compose(p)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	tests := []struct {
		name  string
		id    shards.ID
		err   error
		shard shards.Number
	}{
		{"first shard", id(shards.Parts{Milliseconds: 1, Shard: 0, Sequence: 5}), nil, 0},
		{"last shard", id(shards.Parts{Milliseconds: 1 << 39, Shard: 1999, Sequence: 1023}), nil, 1999},
		{"a shard that is not open", id(shards.Parts{Shard: 2000}), shards.ErrNoShard, 0},
		{"negative", -1, shards.ErrNoShard, 0},
		{"lowest", math.MinInt64, shards.ErrNoShard, 0},
	}
	m := newMap(t, 2000)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n, err := m.ForID(test.id)
			if n != test.shard || !errors.Is(err, test.err) {
				t.Fatalf("got %d, %v, expected %d, %v", n, err, test.shard, test.err)
			}
		})
	}
	if made := m.Time(id(shards.Parts{Milliseconds: 1500, Shard: 3})); !made.Equal(epoch.Add(1500 * time.Millisecond)) {
		t.Errorf("made at %v", made)
	}
}

func TestMapNumberOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		schema string
		ok     bool
		shard  shards.Number
	}{
		{"first", "shard_00000", true, 0},
		{"of the map", "shard_00042", true, 42},
		{"past the map", "shard_99999", true, 99999},
		{"too few digits", "shard_0042", false, 0},
		{"too many digits", "shard_000042", false, 0},
		{"a moved shard's old schema", "shard_00007__moved_12", false, 0},
		{"no prefix", "00042", false, 0},
		{"another prefix", "shards_00042", false, 0},
		{"a sign", "shard_+0042", false, 0},
		{"negative", "shard_-0042", false, 0},
		{"other digits", "shard_0x042", false, 0},
		{"upper case", "SHARD_00042", false, 0},
		{"empty", "", false, 0},
	}
	m := newMap(t, 2000)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n, ok := m.NumberOf(test.schema)
			if ok != test.ok || ok && n != test.shard {
				t.Fatalf("got %d, %v, expected %d, %v", n, ok, test.shard, test.ok)
			}
		})
	}
	for n := range m.All().All() {
		if back, ok := m.NumberOf(m.Schema(n)); !ok || back != n {
			t.Fatalf("shard %d has schema %s, which is shard %d", n, m.Schema(n), back)
		}
	}
}

func TestMapSearchPath(t *testing.T) {
	t.Parallel()
	c := newConfig(8)
	c.SearchPath = []string{"extensions", `odd "name`}
	c.Extensions = []shards.Extension{{Name: "hstore", Schema: "extensions"}, {Name: "pg_cron", Schema: "pg_catalog"}, {Name: "citext"}, {Name: "pg_trgm"}}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.SearchPath(7), `shard_00007, "extensions", "odd ""name", "public", pg_temp`; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	if got, want := newMap(t, 8).SearchPath(7), `shard_00007, pg_temp`; got != want {
		t.Errorf("without extra schemas: got %s, expected %s", got, want)
	}
}

// Not parallel: AllocsPerRun counts what the whole program allocates.
func TestMapAllocatesNothing(t *testing.T) {
	m := newMap(t, 2000)
	id, err := m.Layout().Compose(shards.Parts{Milliseconds: 1, Shard: 1341})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		lookup func()
	}{
		{"ForKey", func() { _, _ = m.ForKey(-31341) }},
		{"ForID", func() { _, _ = m.ForID(id) }},
		{"Schema", func() { _ = m.Schema(1341) }},
		{"Host", func() { _ = m.Host(1341) }},
		{"NumberOf", func() { _, _ = m.NumberOf("shard_01341") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if allocs := testing.AllocsPerRun(100, test.lookup); allocs != 0 {
				t.Fatalf("allocates %v times", allocs)
			}
		})
	}
}

// The race detector does the checking.
func TestMapConcurrently(t *testing.T) {
	t.Parallel()
	m := newMap(t, 2000)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for key := range int64(1000) {
				n, _ := m.ForKey(key * int64(i+1))
				if back, ok := m.NumberOf(m.Schema(n)); !ok || back != n || m.Host(n).Name == "" || m.SearchPath(n) == "" {
					t.Errorf("shard %d became %d", n, back)
				}
				m.All()
				m.NumbersOn("pg-a")
				m.Config()
			}
		})
	}
	wg.Wait()
}

// The IDs of this map hold no time, and have two unused bits.
func TestMapWithoutATime(t *testing.T) {
	t.Parallel()
	c := newConfig(8)
	c.Layout = shards.Layout{Shard: 16, Type: 10, Sequence: 36}
	c.Epoch = time.Time{}
	m, err := c.Map()
	if err != nil {
		t.Fatal(err)
	}
	id, err := m.Layout().Compose(shards.Parts{Shard: 7, Type: 1023, Sequence: 1<<36 - 1})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := m.ForID(id); err != nil || n != 7 || !m.Time(id).IsZero() {
		t.Errorf("ID %d: got shard %d, %v, at %v, expected shard 7 and the zero time", id, n, err, m.Time(id))
	}
	if _, err := m.ForID(id | 1<<62); !errors.Is(err, shards.ErrNoShard) {
		t.Errorf("above what the layout holds: got %v, expected ErrNoShard", err)
	}
}
