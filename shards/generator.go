package shards

import (
	"fmt"
	"slices"
)

// GeneratorKind is a way to make IDs other than next_id().
type GeneratorKind string

// The kinds of [Generator], named as in the articles that describe them.
const (
	// Tickets are Flickr's ticket servers: central databases, each of which makes the numbers of its residue class, such
	// as the odd or the even ones. Their IDs are not ordered across servers and hold no shard.
	Tickets GeneratorKind = "tickets"
	// Interleaved are sequences in every shard, shard k of N drawing k, k+N, k+2N and so on, as MySQL does with
	// auto_increment_increment and auto_increment_offset.
	Interleaved GeneratorKind = "interleaved"
	// CentralSequence is one sequence on one host.
	CentralSequence GeneratorKind = "sequence"
	// Row is a counter in a table's row on one host, for numbers that must have no gaps.
	Row GeneratorKind = "row"
	// UUIDv4 are random UUIDs.
	UUIDv4 GeneratorKind = "uuidv4"
	// UUIDv7 are UUIDs that begin with the time, so that new ones go to the end of an index.
	UUIDv7 GeneratorKind = "uuidv7"
)

// GeneratorKinds are all kinds, in the order of their description.
var GeneratorKinds = []GeneratorKind{Tickets, Interleaved, CentralSequence, Row, UUIDv4, UUIDv7}

// Generator is a way to make IDs other than next_id(), under one or more names. Each name has functions
// next_<name>_id() and next_<name>_ids(n), in every shard's schema or in the schema kiloshard of the
// hosts: see [Generator.InShards].
type Generator struct {
	Kind  GeneratorKind `json:"kind" yaml:"kind"`
	Names []string      `json:"names" yaml:"names"` // one for each thing that has its own numbers, such as photo, account
	// Hosts are names of [Config.Hosts]: the servers of tickets, the one host of a sequence or a row. A server's
	// residue class is its position here, so their order must never change.
	Hosts []string `json:"hosts" yaml:"hosts,omitempty"`
	// Of is the number of residue classes. Servers or shards that are added later need classes of their own, so there may
	// be more than now. Defaults to the number of servers for tickets, and to the number of shards that the layout
	// holds for interleaved. Only for those two.
	Of int `json:"of" yaml:"of,omitempty"`
	// From is the least number that it makes, so that it goes on from an old system's counter. It never changes. Defaults to
	// 1. Not for UUIDs.
	From int64 `json:"from,omitempty" yaml:"from,omitempty"`
}

// withDefaults returns the generator with its empty fields filled in, sharing no slice with g.
func (g Generator) withDefaults(l Layout) Generator {
	g.Names = append([]string(nil), g.Names...)
	g.Hosts = append([]string(nil), g.Hosts...)
	switch {
	case g.Of != 0:
	case g.Kind == Tickets:
		g.Of = len(g.Hosts)
	case g.Kind == Interleaved:
		g.Of = l.MaxShards()
	}
	return g
}

// InShards reports whether each shard makes its own IDs, by functions in its schema.
func (g Generator) InShards() bool {
	return g.Kind == Interleaved || g.Kind == UUIDv4 || g.Kind == UUIDv7
}

// Progression returns the numbers that one server of tickets, one shard of interleaved, or the host of a sequence
// makes: start, start+step and so on. i is the server's position in Hosts, or the shard's number. No number is below From,
// and none is 0.
func (g Generator) Progression(i int) (start, step int64) {
	from := max(g.From, 1)
	switch g.Kind {
	case Interleaved:
		return next(from, int64(i), int64(g.Of)), int64(g.Of)
	case Tickets:
		return next(from, int64(i)+1, int64(g.Of)), int64(g.Of)
	}
	return from, 1
}

// next returns the least number from a positive one on that has the same remainder as class.
func next(from, class, of int64) int64 { return from + ((class-from)%of+of)%of }

// Generators returns the generators of the map. The caller must not change the slice.
func (m *Map) Generators() []Generator { return m.config.Generators }

// Generator returns the generator that has a name, and false when none has it.
func (m *Map) Generator(name string) (Generator, bool) {
	i := slices.IndexFunc(m.config.Generators, func(g Generator) bool { return slices.Contains(g.Names, name) })
	if i < 0 {
		return Generator{}, false
	}
	return m.config.Generators[i], true
}

// ForIDOf returns the shard of an ID that the named generator made. For interleaved IDs it is their remainder;
// other numbers hold no shard, and are keys like any other, with the errors of [Map.ForKey]. It returns [ErrNoShard]
// if the map has no such shard, and [ErrNoGenerator] if no generator has the name or it makes UUIDs: see [Map.ForUUID].
func (m *Map) ForIDOf(name string, id ID) (Number, error) {
	g, ok := m.Generator(name)
	switch {
	case !ok:
		return 0, fmt.Errorf("%q: %w", name, ErrNoGenerator)
	case g.Kind == UUIDv4 || g.Kind == UUIDv7:
		return 0, fmt.Errorf("%q makes UUIDs: %w of numbers", name, ErrNoGenerator)
	case g.Kind != Interleaved:
		return m.ForKey(int64(id))
	}
	if n := Number(int64(id) % int64(g.Of)); id > 0 && m.Has(n) {
		return n, nil
	}
	return 0, fmt.Errorf("ID %d of %q, interleaved of %d; the map has shards 0 to %d: %w", id, name, g.Of, m.Len()-1, ErrNoShard)
}
