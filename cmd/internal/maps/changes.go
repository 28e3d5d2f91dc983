package maps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// mapChange is one difference between two maps. From is empty for an addition, To for a removal.
type mapChange struct {
	Field  string      `json:"field"` // such as hosts, or placement for shards whose home is another one
	Name   string      `json:"name,omitempty"`
	From   string      `json:"from"`
	To     string      `json:"to"`
	Shards *shards.Set `json:"shards,omitempty"`
}

// String returns the change for people.
func (c mapChange) String() string {
	what := c.Field
	if c.Name != "" {
		what += " " + c.Name
	}
	switch {
	case c.Shards != nil && c.From == "":
		return fmt.Sprintf("shards %s: opened on %s", c.Shards, c.To)
	case c.Shards != nil && c.To == "":
		return fmt.Sprintf("shards %s: gone from %s", c.Shards, c.From)
	case c.Shards != nil:
		return fmt.Sprintf("shards %s: %s -> %s", c.Shards, c.From, c.To)
	case c.From == "":
		return fmt.Sprintf("%s: added, %s", what, c.To)
	case c.To == "":
		return fmt.Sprintf("%s: removed, was %s", what, c.From)
	}
	return fmt.Sprintf("%s: %s -> %s", what, c.From, c.To)
}

// summary returns changes on one line.
func summary(changes []mapChange) string {
	const most = 3
	if len(changes) == 0 {
		return "nothing"
	}
	var texts []string
	for i, c := range changes {
		if i == most {
			texts = append(texts, fmt.Sprintf("and %d more", len(changes)-most))
			break
		}
		texts = append(texts, c.String())
	}
	return strings.Join(texts, "; ")
}

// changesBetween returns the differences of b from a, in the order of the config's fields, without versions.
func changesBetween(from, to *shards.Map) []mapChange {
	a, b := from.Config(), to.Config()
	changes := []mapChange{}
	field := func(name string, from, to any) {
		if f, t := fmt.Sprint(from), fmt.Sprint(to); f != t {
			changes = append(changes, mapChange{Field: name, From: f, To: t})
		}
	}
	field("cluster", a.Cluster, b.Cluster)
	field("shards", a.Shards, b.Shards)
	field("schema_prefix", a.SchemaPrefix, b.SchemaPrefix)
	field("epoch", a.Epoch.UTC().Format("2006-01-02T15:04:05.999Z"), b.Epoch.UTC().Format("2006-01-02T15:04:05.999Z"))
	field("layout", a.Layout, b.Layout)
	field("strategy", a.Strategy, b.Strategy)
	changes = append(changes, hostChanges(a.Hosts, b.Hosts)...)
	changes = append(changes, placementChanges(from, to)...)
	field("migrations", a.Migrations, b.Migrations)
	field("search_path", a.SearchPath, b.SearchPath)
	field("old_ids_below", int64(a.OldIDsBelow), int64(b.OldIDsBelow))
	field("shared", a.SharedSchemas, b.SharedSchemas)
	field("extensions", a.Extensions, b.Extensions)
	if !slices.Equal(a.PasswordCommand, b.PasswordCommand) { // people put secrets into its arguments
		changes = append(changes, mapChange{Field: "password_command", From: program(a.PasswordCommand), To: program(b.PasswordCommand) + " (changed)"})
	}
	return append(changes, generatorChanges(a.Generators, b.Generators)...)
}

// program returns the name of a command's program.
func program(words []string) string {
	if len(words) == 0 {
		return "none"
	}
	return words[0]
}

func hostChanges(a, b []shards.Host) []mapChange {
	return namedChanges("hosts", a, b, func(h shards.Host) string { return h.Name }, func(h shards.Host) []attribute {
		replicas := make([]string, len(h.Replicas))
		for i, dsn := range h.Replicas {
			replicas[i] = shownDSN(dsn)
		}
		return []attribute{
			{"dsn", shownDSN(h.DSN), shards.Host{DSN: h.DSN}.Address(), h.DSN},
			{"direct", shownDirect(h.Direct), shards.Host{DSN: h.Direct}.Address(), h.Direct},
			{name: "replicas", shown: fmt.Sprint(replicas), raw: strings.Join(h.Replicas, "\n")},
			{name: "weight", shown: fmt.Sprint(h.Weight)},
			{name: "closed", shown: fmt.Sprint(h.Closed)},
			{name: "capacity", shown: fmt.Sprint(h.Capacity)},
		}
	})
}

func shownDirect(dsn string) string {
	if dsn == "" {
		return "none"
	}
	return shownDSN(dsn)
}

func generatorChanges(a, b []shards.Generator) []mapChange {
	return namedChanges("generators", named(a), named(b), func(g shards.Generator) string { return g.Names[0] }, func(g shards.Generator) []attribute {
		return []attribute{{name: "kind", shown: string(g.Kind)}, {name: "hosts", shown: fmt.Sprint(g.Hosts)}, {name: "of", shown: fmt.Sprint(g.Of)}, {name: "from", shown: fmt.Sprint(g.From)}}
	})
}

// named returns the generators with one name each.
func named(all []shards.Generator) []shards.Generator {
	var one []shards.Generator
	for _, g := range all {
		for _, name := range g.Names {
			g.Names = []string{name}
			one = append(one, g)
		}
	}
	return one
}

// attribute is one thing that is said of a host or a generator: how it is shown, how in short where that tells the
// difference, and what to compare that is never shown.
type attribute struct{ name, shown, short, raw string }

// namedChanges compares things by their names.
func namedChanges[T any](field string, a, b []T, name func(T) string, attributes func(T) []attribute) []mapChange {
	var changes []mapChange
	for _, old := range a {
		i := slices.IndexFunc(b, func(other T) bool { return name(other) == name(old) })
		if i < 0 {
			changes = append(changes, mapChange{Field: field, Name: name(old), From: attributes(old)[0].shown})
			continue
		}
		before, after := attributes(old), attributes(b[i])
		for k := range before {
			if before[k] == after[k] {
				continue
			}
			change := mapChange{Field: field, Name: name(old) + " " + before[k].name, From: before[k].shown, To: after[k].shown}
			if x, y := before[k].short, after[k].short; x != "" && y != "" && x != y {
				change.From, change.To = x, y
			}
			if change.From == change.To {
				change.To += " (another)"
			}
			changes = append(changes, change)
		}
	}
	for _, added := range b {
		if !slices.ContainsFunc(a, func(other T) bool { return name(other) == name(added) }) {
			changes = append(changes, mapChange{Field: field, Name: name(added), To: attributes(added)[0].shown})
		}
	}
	return changes
}

// placementChanges returns the shards whose home is another host, one change for each two hosts, and those that are new or
// gone.
func placementChanges(a, b *shards.Map) []mapChange {
	type hosts struct{ from, to string }
	moved := map[hosts][]shards.Number{}
	var order []hosts
	for n := range shards.Number(max(a.Len(), b.Len())) {
		var h hosts
		if a.Has(n) {
			h.from = a.Host(n).Name
		}
		if b.Has(n) {
			h.to = b.Host(n).Name
		}
		if h.from == h.to {
			continue
		}
		if moved[h] == nil {
			order = append(order, h)
		}
		moved[h] = append(moved[h], n)
	}
	slices.SortStableFunc(order, func(x, y hosts) int { return cmp.Compare(moved[x][0], moved[y][0]) })
	var changes []mapChange
	for _, h := range order {
		set := shards.SetOf(moved[h]...)
		changes = append(changes, mapChange{Field: "placement", From: h.from, To: h.to, Shards: &set})
	}
	return changes
}
