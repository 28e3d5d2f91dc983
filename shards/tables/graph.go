package tables

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ColumnName names a column of a table.
type ColumnName struct {
	Table  Name
	Column string
}

// String writes the name as [Join] does: public.users.id.
func (c ColumnName) String() string { return Join(c.Table.Schema, c.Table.Table, c.Column) }

// MarshalText writes the name as String does.
func (c ColumnName) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Options is what the catalog does not say.
type Options struct {
	Links   []ForeignKey    // that the database does not have. They must refer to unique columns. Defaults to none
	Choices map[Name]Choice // the ways that tables take. Defaults to the best ones
	Without []Name          // tables that have no key, and lead to none. Defaults to none
}

// Choice is the way that a table takes to the key: one of the two fields is set.
type Choice struct {
	Column  string // of the table: it has the key, also without a foreign key
	Through string // the name of the foreign key that is the first link
}

// Graph is how the tables of a catalog reach one key.
type Graph struct {
	catalog *Catalog
	key     ColumnName
	links   []ForeignKey
	choices map[Name]Choice
	without map[Name]bool
	columns map[Name][]string // that have the key, by name
	best    map[Name]Route
}

// NewGraph returns how the tables reach a key. The error says which option names what is not there, or leads nowhere.
func NewGraph(c *Catalog, key ColumnName, o Options) (*Graph, error) {
	g := &Graph{
		catalog: c, key: key, links: slices.Concat(c.ForeignKeys, o.Links), choices: o.Choices,
		without: map[Name]bool{}, columns: map[Name][]string{}, best: map[Name]Route{},
	}
	if t := c.Table(key.Table); t == nil || t.Column(key.Column) == nil {
		return nil, fmt.Errorf("there is no column %s", key)
	}
	for _, name := range o.Without {
		g.without[name] = true
	}
	if g.without[key.Table] {
		return nil, fmt.Errorf("table %s has the key", key.Table)
	}
	for _, link := range o.Links {
		if err := c.CheckLink(link); err != nil {
			return nil, err
		}
	}
	for name, choice := range o.Choices {
		if err := g.checkChoice(name, choice); err != nil {
			return nil, err
		}
	}
	g.findColumns()
	g.findBest()
	for _, name := range slices.SortedFunc(maps.Keys(o.Choices), Name.Compare) {
		if _, ok := g.best[name]; !ok && !g.without[name] {
			return nil, fmt.Errorf("table %s: %s does not lead to %s", name, o.Choices[name].Through, key)
		}
	}
	return g, nil
}

// CheckLink returns an error for a link whose tables or columns are not there, or that refers to no unique key.
func (c *Catalog) CheckLink(link ForeignKey) error {
	from, to := c.Table(link.From), c.Table(link.To)
	switch {
	case from == nil:
		return fmt.Errorf("there is no table %s", link.From)
	case to == nil:
		return fmt.Errorf("there is no table %s", link.To)
	case len(link.Columns) == 0 || len(link.Columns) != len(link.References):
		return fmt.Errorf("the link from %s to %s has %d columns and refers to %d: expected as many, at least one", link.From, link.To, len(link.Columns), len(link.References))
	}
	for i := range link.Columns {
		if from.Column(link.Columns[i]) == nil {
			return fmt.Errorf("table %s has no column %s", link.From, link.Columns[i])
		}
		if to.Column(link.References[i]) == nil {
			return fmt.Errorf("table %s has no column %s", link.To, link.References[i])
		}
	}
	if !to.IsUnique(link.References) {
		return fmt.Errorf("table %s has no unique key of %s, so a row of %s could have two keys", link.To, strings.Join(link.References, ", "), link.From)
	}
	return nil
}

func (g *Graph) checkChoice(name Name, choice Choice) error {
	t := g.catalog.Table(name)
	switch {
	case t == nil:
		return fmt.Errorf("there is no table %s", name)
	case name == g.key.Table && (choice.Column != g.key.Column || choice.Through != ""):
		return fmt.Errorf("table %s has the key: its column is %s", name, g.key.Column)
	case choice.Column != "" && t.Column(choice.Column) == nil:
		return fmt.Errorf("table %s has no column %s", name, choice.Column)
	case choice.Column == "" && !slices.ContainsFunc(g.links, func(f ForeignKey) bool { return f.From == name && f.Name == choice.Through }):
		return fmt.Errorf("table %s has no foreign key %s", name, choice.Through)
	}
	return nil
}

// findColumns finds the columns that have the key: they refer to one that has it.
func (g *Graph) findColumns() {
	g.columns[g.key.Table] = []string{g.key.Column}
	for name, choice := range g.choices {
		if choice.Column != "" && !g.without[name] {
			g.columns[name] = []string{choice.Column}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, f := range g.links {
			if _, chosen := g.choices[f.From]; chosen || f.From == f.To || f.From == g.key.Table || g.without[f.From] {
				continue
			}
			for i, column := range f.Columns {
				if slices.Contains(g.columns[f.To], f.References[i]) && !slices.Contains(g.columns[f.From], column) {
					g.columns[f.From] = append(g.columns[f.From], column)
					changed = true
				}
			}
		}
	}
	for name, columns := range g.columns {
		t := g.catalog.Table(name)
		slices.SortFunc(columns, func(a, b string) int { // those that cannot be null first, then as the table has them
			return cmp.Or(null(t, a)-null(t, b), t.position(a)-t.position(b))
		})
	}
}

func null(t *Table, column string) int {
	if t.Column(column).NotNull {
		return 0
	}
	return 1
}

func (t *Table) position(column string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
}

// findBest finds the best route of each table: by a column of its own, else over the links that lead there with the fewest that can be
// null, then the fewest. A route has no circle, since it costs more than that of the table which its first link leads to.
func (g *Graph) findBest() {
	for name, columns := range g.columns {
		g.best[name] = Route{Column: columns[0], nulls: null(g.catalog.Table(name), columns[0]), catalog: g.catalog}
	}
	for changed := true; changed; {
		changed = false
		for _, f := range g.links {
			if len(g.columns[f.From]) > 0 || f.From == f.To || g.without[f.From] || g.without[f.To] {
				continue
			}
			if choice, ok := g.choices[f.From]; ok && choice.Through != f.Name {
				continue
			}
			onward, ok := g.best[f.To]
			if !ok {
				continue
			}
			route := g.through(f, onward)
			if old, ok := g.best[f.From]; !ok || route.compare(old) < 0 {
				g.best[f.From] = route
				changed = true
			}
		}
	}
}

func (g *Graph) through(f ForeignKey, onward Route) Route {
	nulls := onward.nulls
	if !f.NotNull {
		nulls++
	}
	return Route{Links: slices.Concat([]ForeignKey{f}, onward.Links), Column: onward.Column, nulls: nulls, catalog: g.catalog}
}

// compare orders routes: the best first.
func (r Route) compare(other Route) int {
	order := cmp.Or(r.nulls-other.nulls, len(r.Links)-len(other.Links))
	if order != 0 || len(r.Links) == 0 {
		return order
	}
	return strings.Compare(r.Links[0].Name, other.Links[0].Name)
}

// Links returns all links of the graph: foreign keys, and those of the options.
func (g *Graph) Links() []ForeignKey { return g.links }
