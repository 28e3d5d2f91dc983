package structure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/tables"
)

// Set is the sharded tables of a plan.
type Set struct {
	Tables   []*Table  // in an order in which rows can be inserted
	Problems []Problem // why they cannot become tables of shards
}

// Problem says why a table cannot become one of shards, and what was expected.
type Problem struct {
	Table tables.Name // none if it is one of several tables
	Text  string
}

// String returns the problem with its table.
func (p Problem) String() string {
	if p.Table == (tables.Name{}) {
		return p.Text
	}
	return "table " + p.Table.String() + ": " + p.Text
}

// Table returns the table of a name, or nil.
func (s *Set) Table(name tables.Name) *Table {
	if i := slices.IndexFunc(s.Tables, func(t *Table) bool { return t.Name == name }); i >= 0 {
		return s.Tables[i]
	}
	return nil
}

// Names returns the names of the tables.
func (s *Set) Names() []tables.Name {
	var all []tables.Name
	for _, t := range s.Tables {
		all = append(all, t.Name)
	}
	return all
}

// Table is an old table whose rows go to shards.
type Table struct {
	Name    tables.Name
	OID     uint32
	Columns []Column     // by position
	Key     []string     // columns by which rows are mirrored: unique, not null, checked at once
	Route   tables.Route // from a row to its key
	Keyless bool         // rows without a key stay in the old table
	Owner   string

	Constraints []Object // primary and unique keys, exclusion constraints, checks
	Indexes     []Object // that no constraint has made
	Triggers    []Object
	Links       []Link // foreign keys to sharded tables

	comment  string
	options  []string // of storage
	identity string   // replica identity: d, f, n or i
	rights   []Grant
}

// Column is a column of a table.
type Column struct {
	Name, Type string
	Generated  bool
	Identity   bool
	Always     bool   // of an identity column: statements cannot set it
	Sequence   string // of an identity column, with its schema, as SQL
	Schema     string // that has the operators of the type; empty for pg_catalog
}

// Object is a constraint, an index or a trigger.
type Object struct {
	Name       string
	Definition string // as Postgres writes it
	Comment    string
	Enabled    string // of a trigger: O, D, R or A
	Row        bool   // of a trigger: it fires for each row
	Valid      bool   // of a constraint
}

// Link is a foreign key between sharded tables, as it was before the old tables were closed.
type Link struct {
	Object
	From, To            tables.Name
	Columns, References []string
	OnDelete, OnUpdate  string // a no action, r restrict, c cascade, n set null, d set default
	Deferrable          bool
	Crosses             bool // shards do not have it
}

// Chain reports whether the link is the first of the route of its table.
func (s *Set) Chain(l Link) bool {
	t := s.Table(l.From)
	return len(t.Route.Links) > 0 && t.Route.Links[0].Name == l.Name
}

// All returns the names of the columns.
func (t *Table) All() []string {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	return names
}

// Written returns the columns that a statement can write.
func (t *Table) Written() []string {
	var names []string
	for _, c := range t.Columns {
		if !c.Generated {
			names = append(names, c.Name)
		}
	}
	return names
}

// KeyTypes returns the types of the columns of the key.
func (t *Table) KeyTypes() []string {
	var types []string
	for _, name := range t.Key {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		types = append(types, t.Columns[i].Type)
	}
	return types
}

// Equal returns the condition that columns of the table are equal to others, one by one, by the operators of their types.
func (t *Table) Equal(columns []string, before string, others []string, beforeOther string) string {
	var parts []string
	for i, name := range columns {
		parts = append(parts, fmt.Sprintf("%s%s %s %s%s", before, quote(name), t.Operator(name, "="), beforeOther, quote(others[i])))
	}
	return strings.Join(parts, " and ")
}

// Operator returns an operator of the type of a column.
func (t *Table) Operator(column, name string) string {
	i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == column })
	of := tables.Column{Schema: t.Columns[i].Schema}
	return of.Operator(name)
}

// Grant is a right on a table.
type Grant struct {
	Role      string // empty for PUBLIC
	Privilege string
	Column    string // empty for the whole table
	Grantable bool   // WITH GRANT OPTION
}

// On returns the statement that grants the right on a table or view, whose name is in quotes.
func (g Grant) On(name string) string {
	privilege, role, option := g.Privilege, "public", ""
	if g.Column != "" {
		privilege += " (" + quote(g.Column) + ")"
	}
	if g.Role != "" {
		role = quote(g.Role)
	}
	if g.Grantable {
		option = " with grant option"
	}
	return fmt.Sprintf("grant %s on %s to %s%s", privilege, name, role, option)
}
