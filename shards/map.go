package shards

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// schemaDigits is the width of the number in a schema's name.
const schemaDigits = 5

// Map says which host every shard is on and how IDs are made. It never changes, and is safe for concurrent use.
// Looking up a shard allocates nothing.
type Map struct {
	config   *Config  // package fmt prints it as an address where it cannot call Format
	hosts    []int    // by Number: index into config.Hosts
	schemas  []string // by Number
	capacity []int64  // by Number

	ids       idPicker
	finder    finder  // of the strategy
	entries   finder  // of a directory: the shard that holds a key's entry
	otherwise *finder // of a directory: the shard of a key without an entry; nil without one
}

// Map checks the config and returns its map. The error is a [FieldError].
func (c Config) Map() (*Map, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	identity := c.identity()
	for i := range c.Hosts {
		c.Hosts[i].identity = identity
	}
	m := &Map{config: &c, hosts: make([]int, c.Shards), schemas: make([]string, c.Shards)}
	for _, p := range c.Placement {
		host := slices.Index(c.hostNames(), p.Host)
		for n := range p.Shards.All() {
			m.hosts[n] = host
		}
	}
	for n := range m.schemas {
		m.schemas[n] = fmt.Sprintf("%s%0*d", c.SchemaPrefix, schemaDigits, n)
	}
	m.capacity = c.Strategy.Allocate.capacities(c.Hosts, m.hosts)
	m.ids = idPicker{c.Layout, c.Epoch, c.Shards, c.OldIDsBelow}
	m.finder = c.Strategy.finder(m.ids)
	m.entries = Strategy{By: Hash, Of: c.Strategy.Of}.finder(m.ids)
	if c.Strategy.Otherwise != nil {
		otherwise := c.Strategy.Otherwise.finder(m.ids)
		m.otherwise = &otherwise
	}
	return m, nil
}

// identity returns the identity that the hosts of the config's cluster have.
func (c Config) identity() *Identity {
	layout := c.Layout
	layout.Time = layout.TimeBits()
	id := &Identity{Cluster: c.Cluster, SchemaPrefix: c.SchemaPrefix, Layout: layout, Keys: c.Strategy.forIdentity(c.Shards).String()}
	if layout.HasTime() {
		id.Epoch = c.Epoch
	}
	return id
}

// String returns the cluster's name and how many shards and hosts it has.
func (m *Map) String() string {
	hosts := "hosts"
	if len(m.config.Hosts) == 1 {
		hosts = "host"
	}
	return fmt.Sprintf("%s: %d shards on %d %s", m.config.Cluster, m.Len(), len(m.config.Hosts), hosts)
}

// Format prints what [Map.String] returns for every verb, so that no DSN is printed.
func (m *Map) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), m.String())
}

// Config returns the config that the map was made from, with its defaults filled in. The caller must
// not change its slices.
func (m *Map) Config() Config { return *m.config }

// Version returns the version of the map in its store, or 0 if it was never in a store.
func (m *Map) Version() int { return m.config.Version }

// Len returns how many shards there are. They are numbered from 0 to Len()-1.
func (m *Map) Len() int { return len(m.hosts) }

// All returns the set of all shards.
func (m *Map) All() Set { return SetOfRanges(Range{0, Number(m.Len() - 1)}) }

// Has reports whether the map has a shard n.
func (m *Map) Has(n Number) bool { return n >= 0 && int(n) < len(m.hosts) }

// Layout returns how IDs are split.
func (m *Map) Layout() Layout { return m.config.Layout }

// Epoch returns the time from which IDs count. For a layout without a time it has no meaning, and may
// be the zero [time.Time].
func (m *Map) Epoch() time.Time { return m.config.Epoch }

// Time returns when an ID was made, to the millisecond, in UTC. For a layout without a time it is the
// zero [time.Time].
func (m *Map) Time(id ID) time.Time { return m.config.Layout.TimeOf(id, m.config.Epoch) }

// Hosts returns the hosts in the order of the config. The caller must not change the slice.
func (m *Map) Hosts() []Host { return m.config.Hosts }

// HostIndex returns the index into [Map.Hosts] of the host of shard n. It panics if [Map.Has] is false.
func (m *Map) HostIndex(n Number) int { return m.hosts[n] }

// Host returns the host of shard n. It panics if [Map.Has] is false.
func (m *Map) Host(n Number) Host { return m.config.Hosts[m.hosts[n]] }

// Schema returns the name of the schema of shard n, such as shard_00042. It holds only characters
// that need no quotes in SQL. It panics if [Map.Has] is false.
func (m *Map) Schema(n Number) string { return m.schemas[n] }

// Schemas returns those of some shards, in their order.
func (m *Map) Schemas(numbers []Number) []string {
	schemas := make([]string, len(numbers))
	for i, n := range numbers {
		schemas[i] = m.Schema(n)
	}
	return schemas
}

// NumberOf returns the shard number in a schema's name, and false if the name is not a shard's.
// The map need not have a shard of that number.
func (m *Map) NumberOf(schema string) (Number, bool) {
	digits, ok := strings.CutPrefix(schema, m.config.SchemaPrefix)
	if !ok || len(digits) != schemaDigits {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return Number(n), err == nil
}

// HostNamed returns the host with a name, and whether there is one.
func (m *Map) HostNamed(name string) (Host, bool) {
	for _, h := range m.Hosts() {
		if h.Name == name {
			return h, true
		}
	}
	return Host{}, false
}

// NumbersOn returns the shards on the named host, in rising order.
func (m *Map) NumbersOn(host string) []Number {
	var numbers []Number
	for n, i := range m.hosts {
		if m.config.Hosts[i].Name == host {
			numbers = append(numbers, Number(n))
		}
	}
	return numbers
}

// SharedSchemas returns the schemas that the shards of a host share. The caller must not change the slice.
func (m *Map) SharedSchemas() []string { return m.config.SharedSchemas }

// Extensions returns the extensions that each host has. The caller must not change the slice.
func (m *Map) Extensions() []Extension { return m.config.Extensions }

// Types returns the types of objects. The caller must not change the slice.
func (m *Map) Types() []ObjectType { return m.config.Types }

// Strategy returns how a key picks its shard. The caller must not change its slices.
func (m *Map) Strategy() Strategy { return m.config.Strategy }

// Generators returns the generators of the map. The caller must not change the slice.
func (m *Map) Generators() []Generator { return m.config.Generators }

// Generator returns the generator that has a name, and false when none has it.
func (m *Map) Generator(name string) (Generator, bool) {
	return generatorNamed(m.config.Generators, name)
}

// Capacity returns how many keys may be put into shard n: [Allocation.Capacity], or the shard's part of its
// host's capacity if that is less, else [NoLimit]. The parts of all shards of a host add up to [Host.Capacity]. It
// panics where [Map.Has] is false.
func (m *Map) Capacity(n Number) int64 { return m.capacity[n] }

// SearchPath returns the search_path in which the unqualified names of shard n's tables resolve: its schema, the
// map's extra schemas, those of its extensions, and pg_temp last, so that a temporary table of an earlier user of the
// session cannot hide a table of the shard. It is written as SQL, to follow SET search_path =.
func (m *Map) SearchPath(n Number) string {
	extra := slices.Clone(m.config.SearchPath)
	// Without its schema an extension's operators are not found, and others may be used: citext would compare as text
	// does.
	for _, e := range m.config.Extensions {
		if e.Schema != "pg_catalog" && !slices.Contains(extra, e.Schema) { // pg_catalog always comes first
			extra = append(extra, e.Schema)
		}
	}
	path := m.schemas[n]
	for _, schema := range extra {
		path += `, "` + strings.ReplaceAll(schema, `"`, `""`) + `"`
	}
	return path + ", pg_temp"
}

// WithCredentials returns the map with credentials from fn for all its hosts, which override those in their DSNs.
// Everything that uses the map connects with them: create, verify, migrations, the router. If fn is nil it returns
// the map unchanged.
func (m *Map) WithCredentials(fn CredentialsFunc) *Map {
	if fn == nil {
		return m
	}
	config := *m.config
	config.Hosts = append([]Host(nil), config.Hosts...)
	for i, h := range config.Hosts {
		config.Hosts[i] = h.WithCredentials(fn)
	}
	other := *m
	other.config = &config
	return &other
}
