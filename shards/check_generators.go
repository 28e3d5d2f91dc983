package shards

import (
	"fmt"
	"slices"
	"strings"
)

const expectedGeneratorName = "a small letter or '_', then small letters, digits and '_', 40 at most"

func checkGenerators(c Config) error {
	seen := map[string]int{}
	for i, g := range c.Generators {
		field := fmt.Sprintf("generators[%d]", i)
		if !slices.Contains(GeneratorKinds, g.Kind) {
			return &FieldError{Field: field + ".kind", Found: quoted(string(g.Kind)), Expected: expectedKinds()}
		}
		if len(g.Names) == 0 {
			return &FieldError{Field: field + ".names", Found: "none", Expected: "at least one name, such as [photo, account]"}
		}
		for k, name := range g.Names {
			at := fmt.Sprintf("%s.names[%d]", field, k)
			if !schemaPattern.MatchString(name) || len(name) > maxPrefixLen {
				return &FieldError{Field: at, Found: quoted(name), Expected: expectedGeneratorName}
			}
			if other, ok := seen[name]; ok {
				return &FieldError{Field: at, Found: fmt.Sprintf("%s, which generators[%d] has already", quoted(name), other), Expected: "each name once"}
			}
			seen[name] = i
		}
		if err := checkGeneratorHosts(c, field, g); err != nil {
			return err
		}
		if err := checkOf(c, field, g); err != nil {
			return err
		}
		if err := checkFrom(field+".from", g); err != nil {
			return err
		}
	}
	return nil
}

func checkGeneratorHosts(c Config, field string, g Generator) error {
	least, most, expected := 0, 0, fmt.Sprintf("none: %s is made in every shard", g.Kind)
	switch g.Kind {
	case Tickets:
		least, most, expected = 2, len(c.Hosts), "two or more hosts, whose order never changes"
	case CentralSequence, Row:
		least, most, expected = 1, 1, "the one host that holds it"
	}
	if n := len(g.Hosts); n < least || n > most {
		return &FieldError{Field: field + ".hosts", Found: fmt.Sprintf("%d hosts", n), Expected: expected}
	}
	for k, name := range g.Hosts {
		at := fmt.Sprintf("%s.hosts[%d]", field, k)
		if !slices.ContainsFunc(c.Hosts, func(h Host) bool { return h.Name == name }) {
			return &FieldError{Field: at, Found: quoted(name), Expected: "one of the hosts " + hostNames(c.Hosts)}
		}
		if slices.Contains(g.Hosts[:k], name) {
			return &FieldError{Field: at, Found: quoted(name) + " a second time", Expected: "each host once"}
		}
	}
	return nil
}

// checkOf checks that every server and every shard has its own residue class.
func checkOf(c Config, field string, g Generator) error {
	field += ".of"
	const most = 1 << 20 // leaves each class 2^43 numbers
	switch g.Kind {
	case Tickets:
		if g.Of < len(g.Hosts) || g.Of > most {
			return &FieldError{Field: field, Found: fmt.Sprint(g.Of), Expected: fmt.Sprintf("%d, the number of its hosts, to %d", len(g.Hosts), most)}
		}
	case Interleaved:
		if g.Of < c.Shards || g.Of > most {
			return &FieldError{Field: field, Found: fmt.Sprint(g.Of), Expected: fmt.Sprintf("%d, the number of shards, to %d", c.Shards, most)}
		}
	default:
		if g.Of != 0 {
			return &FieldError{Field: field, Found: fmt.Sprint(g.Of), Expected: "none: only tickets and interleaved divide the numbers"}
		}
	}
	return nil
}

// checkFrom leaves a generator as many numbers as it could have used up.
func checkFrom(field string, g Generator) error {
	const most = 1 << 62
	switch {
	case g.From != 0 && (g.Kind == UUIDv4 || g.Kind == UUIDv7):
		return &FieldError{Field: field, Found: fmt.Sprint(g.From), Expected: "none: UUIDs have no order"}
	case g.From < 0 || g.From > most:
		return &FieldError{Field: field, Found: fmt.Sprint(g.From), Expected: fmt.Sprintf("the first number, 1 to %d", int64(most))}
	}
	return nil
}

func expectedKinds() string {
	kinds := make([]string, len(GeneratorKinds))
	for i, kind := range GeneratorKinds {
		kinds[i] = string(kind)
	}
	return "one of " + strings.Join(kinds, ", ")
}
