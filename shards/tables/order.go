package tables

import (
	"cmp"
	"slices"
)

// Order returns the tables in an order in which rows can be inserted: those that a foreign key refers to come before those
// that have it. In the reverse order rows can be deleted. Where foreign keys form a circle it leaves some of them out, those that are
// deferrable or can be null first, and returns these as well: set such a column afterwards, or defer the constraint. A foreign key
// from a table to itself is always among them.
func (g *Graph) Order() (tables []Name, broken []ForeignKey) {
	var rest []Name
	for _, t := range g.catalog.Tables {
		rest = append(rest, t.Name)
	}
	var links []ForeignKey
	for _, f := range g.links {
		if f.From == f.To {
			broken = append(broken, f)
		} else if f.Declared {
			links = append(links, f)
		}
	}
	for len(rest) > 0 {
		free := slices.IndexFunc(rest, func(name Name) bool {
			return !slices.ContainsFunc(links, func(f ForeignKey) bool { return f.From == name })
		})
		if free < 0 {
			f := circular(links)
			broken = append(broken, f)
			links = slices.DeleteFunc(links, func(other ForeignKey) bool { return other.From == f.From && other.Name == f.Name })
			continue
		}
		name := rest[free]
		tables, rest = append(tables, name), slices.Delete(rest, free, free+1)
		links = slices.DeleteFunc(links, func(f ForeignKey) bool { return f.To == name })
	}
	return tables, broken
}

// circular returns the link to leave out of those that form circles.
func circular(links []ForeignKey) ForeignKey {
	var found []ForeignKey
	for _, f := range links {
		if leads(links, f.To, f.From) {
			found = append(found, f)
		}
	}
	price := func(f ForeignKey) int {
		switch {
		case f.Deferrable:
			return 0
		case !f.NotNull:
			return 1
		}
		return 2
	}
	return slices.MinFunc(found, func(a, b ForeignKey) int { return cmp.Compare(price(a), price(b)) })
}

// leads reports whether links lead from one table to another.
func leads(links []ForeignKey, from, to Name) bool {
	seen := map[Name]bool{from: true}
	for next := []Name{from}; len(next) > 0; next = next[1:] {
		if next[0] == to {
			return true
		}
		for _, f := range links {
			if f.From == next[0] && !seen[f.To] {
				seen[f.To] = true
				next = append(next, f.To)
			}
		}
	}
	return false
}
