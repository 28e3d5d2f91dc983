package shards

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// ErrNoShard says that a key, an ID or a number belongs to no shard of the map.
var ErrNoShard = errors.New("no such shard")

// ErrNoGenerator says that the map has no generator of a name.
var ErrNoGenerator = errors.New("no such generator")

// schemaDigits is the width of the number in a schema's name.
const schemaDigits = 5

// Map says which host every shard is on and how IDs are made. It never changes, and is safe for
// concurrent use. Looking up a shard allocates nothing.
type Map struct {
	config  *Config  // package fmt prints it as an address where it cannot call Format
	home    []int    // by Number: index into config.Hosts
	schemas []string // by Number

	picker    picker  // of the strategy
	entries   picker  // of a directory
	otherwise picker  // of a directory; nil without one
	capacity  []int64 // by Number
}

// Map checks the config and returns its map. The error is a [FieldError].
func (c Config) Map() (*Map, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Hosts = slices.Clone(c.Hosts)
	identity := c.identity()
	for i := range c.Hosts {
		c.Hosts[i].identity = identity
	}
	m := &Map{config: &c, home: make([]int, c.Shards), schemas: make([]string, c.Shards)}
	for _, p := range c.Placement {
		host := slices.IndexFunc(c.Hosts, func(h Host) bool { return h.Name == p.Host })
		for n := range p.Shards.All() {
			m.home[n] = host
		}
	}
	for n := range m.schemas {
		m.schemas[n] = fmt.Sprintf("%s%0*d", c.SchemaPrefix, schemaDigits, n)
	}
	m.picker = c.Strategy.picker(c)
	m.entries = Strategy{By: Hash, Of: c.Strategy.Of}.picker(c)
	if c.Strategy.Otherwise != nil {
		m.otherwise = c.Strategy.Otherwise.picker(c)
	}
	m.capacity = m.capacities()
	return m, nil
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
func (m *Map) Len() int { return len(m.home) }

// All returns the set of all shards.
func (m *Map) All() Set { return SetOfRanges(Range{0, Number(m.Len() - 1)}) }

// Has reports whether the map has a shard n.
func (m *Map) Has(n Number) bool { return n >= 0 && int(n) < len(m.home) }

// Layout returns how IDs are split.
func (m *Map) Layout() Layout { return m.config.Layout }

// Epoch returns the time from which IDs count. For a layout without a time it has no meaning, and may
// be the zero [time.Time].
func (m *Map) Epoch() time.Time { return m.config.Epoch }

// Hosts returns the hosts in the order of the config. The caller must not change the slice.
func (m *Map) Hosts() []Host { return m.config.Hosts }

// HostIndex returns the index into [Map.Hosts] of the host of shard n. It panics if [Map.Has]
// is false.
func (m *Map) HostIndex(n Number) int { return m.home[n] }

// Host returns the host of shard n. It panics if [Map.Has] is false.
func (m *Map) Host(n Number) Host { return m.config.Hosts[m.home[n]] }

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
	for n, i := range m.home {
		if m.config.Hosts[i].Name == host {
			numbers = append(numbers, Number(n))
		}
	}
	return numbers
}

// ForBytes returns the shard of any bytes, whatever the strategy: the remainder of their xxHash (64 bits, seed 0) divided by
// the number of shards.
func (m *Map) ForBytes(key []byte) Number {
	return Number(xxhash.Sum64(key) % uint64(len(m.home)))
}

// ForUUID returns the shard of a UUID. A UUID holds no shard, so it is the [Map.ForBytes] of its 16 bytes.
func (m *Map) ForUUID(uuid [16]byte) Number { return m.ForBytes(uuid[:]) }

// ForID returns the shard that made an ID. It returns [ErrNoShard] for an ID that no shard of the
// map could have made.
func (m *Map) ForID(id ID) (Number, error) { return m.config.Layout.shardOf(id, m.Len()) }

// Time returns when an ID was made, to the millisecond, in UTC. For a layout without a time it is the
// zero [time.Time].
func (m *Map) Time(id ID) time.Time { return m.config.Layout.TimeOf(id, m.config.Epoch) }

// SharedSchemas returns the schemas that the shards of a host share. The caller must not change the slice.
func (m *Map) SharedSchemas() []string { return m.config.SharedSchemas }

// SearchPath returns the search_path in which the unqualified names of shard n's tables
// resolve: its schema, the map's extra schemas, those of its extensions, and pg_temp last, so that a temporary table of an
// earlier user of the session cannot hide a table of the shard. It is written as SQL, to follow
// SET search_path =.
func (m *Map) SearchPath(n Number) string {
	path := m.schemas[n]
	for _, extra := range m.config.extraSchemas() {
		path += `, "` + strings.ReplaceAll(extra, `"`, `""`) + `"`
	}
	return path + ", pg_temp"
}
