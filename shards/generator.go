package shards

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// GeneratorKind is a way to make IDs other than next_id().
type GeneratorKind string

// The kinds of [Generator], named as in the articles that describe them.
const (
	// Tickets are Flickr's ticket servers: central databases, each of which makes the numbers of its residue class,
	// such as the odd or the even ones. Their IDs are not ordered across servers and hold no shard.
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

// ErrNoGenerator says that the map has no generator of a name.
var ErrNoGenerator = errors.New("no such generator")

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
	// Of is the number of residue classes. Servers or shards that are added later need classes of their own, so there
	// may be more than now. Defaults to the number of servers for tickets, and to the number of shards that the
	// layout holds for interleaved. Only for those two.
	Of int `json:"of" yaml:"of,omitempty"`
	// From is the least number that it makes, to continue an old system's counter. It never changes. Defaults to 1. Not
	// for UUIDs.
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
// makes: start, start+step and so on. i is the server's position in Hosts, or the shard's number. No number is below
// From, and none is 0.
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

func generatorNamed(all []Generator, name string) (Generator, bool) {
	i := slices.IndexFunc(all, func(g Generator) bool { return slices.Contains(g.Names, name) })
	if i < 0 {
		return Generator{}, false
	}
	return all[i], true
}

// objectNamePattern matches a name that needs no quotes in SQL.
var objectNamePattern = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// isObjectName reports whether a name may be a part of a name in Postgres, whose 63 bytes also have to hold five digits
// and the ending of a moved shard's old schema.
func isObjectName(name string) bool { return objectNamePattern.MatchString(name) && len(name) <= 40 }

// checkGenerators checks generators in a map of count shards on the named hosts.
func checkGenerators(all []Generator, hosts []string, count int) error {
	seen := map[string]int{}
	for i, g := range all {
		field := fmt.Sprintf("generators[%d]", i)
		if !slices.Contains(GeneratorKinds, g.Kind) {
			return invalid(field+".kind", quoted(string(g.Kind)))
		}
		if len(g.Names) == 0 {
			return &FieldError{Field: field + ".names", Found: "none", Expected: "at least one name, such as [photo, account]"}
		}
		for k, name := range g.Names {
			at := fmt.Sprintf("%s.names[%d]", field, k)
			if !isObjectName(name) {
				return invalid(at, quoted(name))
			}
			if other, ok := seen[name]; ok {
				return &FieldError{Field: at, Found: fmt.Sprintf("%s, which generators[%d] has already", quoted(name), other), Expected: "each name once"}
			}
			seen[name] = i
		}
		if err := cmp.Or(g.checkHosts(field+".hosts", hosts), g.checkOf(field+".of", count), g.checkFrom(field+".from")); err != nil {
			return err
		}
	}
	return nil
}

func (g Generator) checkHosts(field string, hosts []string) error {
	least, most, expected := 0, 0, fmt.Sprintf("none: %s is made in every shard", g.Kind)
	switch g.Kind {
	case Tickets:
		least, most, expected = 2, len(hosts), "two or more hosts, whose order never changes"
	case CentralSequence, Row:
		least, most, expected = 1, 1, "the one host that holds it"
	}
	if n := len(g.Hosts); n < least || n > most {
		return &FieldError{Field: field, Found: fmt.Sprintf("%d hosts", n), Expected: expected}
	}
	for k, name := range g.Hosts {
		at := fmt.Sprintf("%s[%d]", field, k)
		if !slices.Contains(hosts, name) {
			return &FieldError{Field: at, Found: quoted(name), Expected: "one of the hosts " + strings.Join(hosts, ", ")}
		}
		if slices.Contains(g.Hosts[:k], name) {
			return &FieldError{Field: at, Found: quoted(name) + " a second time", Expected: "each host once"}
		}
	}
	return nil
}

// checkOf checks that every server and every shard has its own residue class.
func (g Generator) checkOf(field string, count int) error {
	const most = 1 << 20 // leaves each class 2^43 numbers
	switch g.Kind {
	case Tickets:
		if g.Of < len(g.Hosts) || g.Of > most {
			return &FieldError{Field: field, Found: fmt.Sprint(g.Of), Expected: fmt.Sprintf("%d, the number of its hosts, to %d", len(g.Hosts), most)}
		}
	case Interleaved:
		if g.Of < count || g.Of > most {
			return &FieldError{Field: field, Found: fmt.Sprint(g.Of), Expected: fmt.Sprintf("%d, the number of shards, to %d", count, most)}
		}
	default:
		if g.Of != 0 {
			return &FieldError{Field: field, Found: fmt.Sprint(g.Of), Expected: "none: only tickets and interleaved divide the numbers"}
		}
	}
	return nil
}

// checkFrom checks that the generator has at least as many numbers left as are below the first one.
func (g Generator) checkFrom(field string) error {
	const most = 1 << 62
	switch {
	case g.From != 0 && (g.Kind == UUIDv4 || g.Kind == UUIDv7):
		return &FieldError{Field: field, Found: fmt.Sprint(g.From), Expected: "none: UUIDs have no order"}
	case g.From < 0 || g.From > most:
		return &FieldError{Field: field, Found: fmt.Sprint(g.From), Expected: fmt.Sprintf("the first number, 1 to %d", int64(most))}
	}
	return nil
}
