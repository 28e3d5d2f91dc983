package tables

import "slices"

// Crossing is a foreign key that can lead from a row to a row of another key.
type Crossing struct {
	ForeignKey ForeignKey
	Route      Route // to the key of the row that it refers to
}

// Route returns the way that a table takes to the key, and false if it reaches none.
func (g *Graph) Route(name Name) (Route, bool) {
	route, ok := g.best[name]
	return route, ok
}

// Columns returns the columns of a table that have a key: they refer to one, or are chosen. Those that cannot be null come first.
func (g *Graph) Columns(name Name) []string {
	found := slices.Clone(g.columns[name])
	if name == g.key.Table {
		return found
	}
	for _, f := range g.links {
		if column, ok := g.direct(f); ok && f.From == name && !slices.Contains(found, column) {
			found = append(found, column)
		}
	}
	return found
}

// Crossings returns the foreign keys of a table, also those to itself, that can lead to a row of another key. A foreign key that has
// the column of the table's own key cannot, nor can the first link of its route.
func (g *Graph) Crossings(name Name) []Crossing {
	best, ok := g.best[name]
	if !ok {
		return nil
	}
	var found []Crossing
	for _, f := range g.links {
		onward, ok := g.best[f.To]
		if f.From != name || !ok || len(best.Links) > 0 && best.Links[0].Name == f.Name {
			continue
		}
		column, direct := g.direct(f)
		switch {
		case !direct:
			found = append(found, Crossing{f, g.through(f, onward)})
		case len(best.Links) > 0 || column != best.Column:
			found = append(found, Crossing{f, Route{Column: column, nulls: null(g.catalog.Table(name), column), catalog: g.catalog}})
		}
	}
	return found
}

// direct returns the column of a link that has the key of the row that it refers to, and false if only that row has it.
func (g *Graph) direct(f ForeignKey) (string, bool) {
	onward, ok := g.best[f.To]
	if !ok || len(onward.Links) > 0 {
		return "", false
	}
	i := slices.Index(f.References, onward.Column)
	if i < 0 {
		return "", false
	}
	return f.Columns[i], true
}

// Choices returns the foreign keys of a table that can be the first link of its route.
func (g *Graph) Choices(name Name) []ForeignKey {
	var found []ForeignKey
	for _, f := range g.links {
		_, direct := g.direct(f)
		if _, ok := g.best[f.To]; ok && f.From == name && f.To != name && !direct {
			found = append(found, f)
		}
	}
	return found
}
