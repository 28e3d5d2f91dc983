package tables

import (
	"fmt"
	"strings"
)

// Route is one way from the rows of a table to their key.
type Route struct {
	Links  []ForeignKey // from the table on; none if a column of the table itself has the key
	Column string       // that has the key, of the table that the last link leads to

	nulls   int // links that can be null, and the column if it can
	catalog *Catalog
}

// String writes the route for people: user_id, or album_id → public.albums.user_id.
func (r Route) String() string {
	var b strings.Builder
	for i, link := range r.Links {
		b.WriteString(strings.Join(link.Columns, ", ") + " → " + link.To.String())
		if i < len(r.Links)-1 {
			b.WriteString(".")
		}
	}
	if len(r.Links) > 0 {
		b.WriteString(".")
	}
	return b.String() + Join(r.Column)
}

// CanBeNull reports whether a row can lack the key, as the constraints of the database have it.
func (r Route) CanBeNull() bool { return r.nulls > 0 }

// Condition returns the condition that a row of the table has a key for which test holds. alias is the name of the table in
// the statement; the names k1, k2, … must be free there. test gets the key as a column with its alias, such as k1."user_id".
func (r Route) Condition(alias string, test func(key string) string) string {
	if len(r.Links) == 0 {
		return test(alias + "." + quoted(r.Column))
	}
	joins, key := r.joins("k", alias, 1)
	return fmt.Sprintf("exists (select from %s k1%s where %s and %s)", r.from(0), joins, r.on(0, "k1", alias), test(key))
}

// Value returns an expression of the key of one row, such as NEW of a trigger: of a column of the row itself, or of a subselect, which is null
// if the row reaches no key. The names k1, k2, … must be free in it.
func (r Route) Value(row string, of func(key string) string) string {
	if len(r.Links) == 0 {
		return of(row + "." + quoted(r.Column))
	}
	joins, key := r.joins("k", row, 1)
	return fmt.Sprintf("(select %s from %s k1%s where %s)", of(key), r.from(0), joins, r.on(0, "k1", row))
}

// Joins returns left joins from the table to that with the key, and the key as a column with its alias. The aliases begin with
// prefix. The key is null for a row that reaches none. A row stays one row, since links refer to unique columns.
func (r Route) Joins(alias, prefix string) (joins, key string) {
	return r.joins(prefix, alias, 0)
}

// joins returns the joins of the links from one on. Those after the first of a condition are inner joins.
func (r Route) joins(prefix, alias string, first int) (joins, key string) {
	kind := "left join"
	if first > 0 {
		kind = "join"
	}
	at := alias
	for i := range r.Links {
		here := fmt.Sprintf("%s%d", prefix, i+1)
		if i >= first {
			joins += fmt.Sprintf(" %s %s %s on %s", kind, r.from(i), here, r.on(i, here, at))
		}
		at = here
	}
	return joins, at + "." + quoted(r.Column)
}

func (r Route) from(link int) string { return r.catalog.Table(r.Links[link].To).From() }

func (r Route) on(i int, to, from string) string {
	link := r.Links[i]
	parts := make([]string, len(link.Columns))
	for i, column := range link.Columns {
		equal := r.catalog.Table(link.To).Column(link.References[i]).Operator("=")
		parts[i] = fmt.Sprintf("%s.%s %s %s.%s", to, quoted(link.References[i]), equal, from, quoted(column))
	}
	return strings.Join(parts, " and ")
}
