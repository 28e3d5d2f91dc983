package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Catalog is the tables of a database and the foreign keys between them, without those of Postgres, of extensions and of
// Kiloshard.
type Catalog struct {
	Tables      []*Table // by name
	ForeignKeys []ForeignKey

	byName map[Name]*Table
}

// Kind is the kind of a table.
type Kind string

// The kinds of tables.
const (
	Ordinary    Kind = "table"
	Partitioned Kind = "partitioned table" // with all its partitions
	Foreign     Kind = "foreign table"
)

// Table is one table.
type Table struct {
	Name       Name
	Kind       Kind
	Columns    []Column    // by position
	Keys       []UniqueKey // the primary key first, if there is one
	Parents    []Name      // that it inherits from; not those of a partition
	Children   []Name      // that inherit from it
	Partitions int         // of a partitioned table, with the partitions of partitions
	Unlogged   bool
	Rows       int64 // the planner's estimate; -1 if the table was never analyzed
	Bytes      int64 // with indexes and TOAST, and those of partitions

	oid uint32
}

// Column is a column of a table.
type Column struct {
	Name     string
	Type     string // as format_type writes it, such as bigint
	NotNull  bool
	Default  bool   // it has a default, an identity or a generation expression
	Sequence string // that its default draws from, with its schema; else empty
	Always   bool   // GENERATED ALWAYS AS IDENTITY: statements cannot set it
	Computed bool   // GENERATED ALWAYS AS an expression
	Schema   string // that has the operators of the type; empty for pg_catalog. That of an extension's type, such as citext, is another one
}

// UniqueKey is a primary key, a unique constraint or a unique index, but no key WITHOUT OVERLAPS.
type UniqueKey struct {
	Name       string
	Columns    []string // without expressions
	Primary    bool
	Partial    bool // unique among some rows
	Computed   bool // it has an expression
	Deferrable bool
}

// ForeignKey is a link from rows of one table to those of another.
type ForeignKey struct {
	Name       string
	From, To   Name
	Columns    []string // of From
	References []string // of To, one for each of Columns
	NotNull    bool     // no column can be null
	Deferrable bool
	Valid      bool // all rows were checked
	Cascades   bool // it changes or deletes rows of From: ON UPDATE or ON DELETE, other than NO ACTION and RESTRICT
	Declared   bool // the database has it; else only a file says so
}

// String names the link for people: photos_album_id_fkey (album_id → public.albums).
func (f ForeignKey) String() string {
	return fmt.Sprintf("%s (%s → %s)", f.Name, strings.Join(f.Columns, ", "), f.To)
}

// Table returns the table of a name, or nil.
func (c *Catalog) Table(name Name) *Table { return c.byName[name] }

// Find returns the table that dotted parts name: with its schema, or without, if one schema has such a table, or public has.
func (c *Catalog) Find(parts ...string) (*Table, error) {
	var found []*Table
	for _, t := range c.Tables {
		if t.Name.Table == parts[len(parts)-1] && (len(parts) == 1 || t.Name.Schema == parts[0]) {
			found = append(found, t)
		}
	}
	if i := slices.IndexFunc(found, func(t *Table) bool { return t.Name.Schema == "public" }); i >= 0 {
		found = found[i : i+1]
	}
	switch len(found) {
	case 0:
		for _, t := range c.Tables {
			if strings.EqualFold(t.Name.Table, parts[len(parts)-1]) {
				return nil, fmt.Errorf("there is no table %s; there is %s", Join(parts...), t.Name)
			}
		}
		return nil, fmt.Errorf("there is no table %s", Join(parts...))
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("table %s is in the schemas %s and %s: name one", Join(parts...), found[0].Name.Schema, found[1].Name.Schema)
}

// Column returns a column of the table, or nil.
func (t *Table) Column(name string) *Column {
	if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return &t.Columns[i]
	}
	return nil
}

// Operator returns an operator of the type of a column, for a session with any search_path.
func (c *Column) Operator(name string) string {
	if c.Schema == "" {
		return name
	}
	return fmt.Sprintf("operator(%s.%s)", quoted(c.Schema), name)
}

// IsWhole reports whether the column has whole numbers.
func (c *Column) IsWhole() bool {
	return slices.Contains([]string{"smallint", "integer", "bigint"}, c.Type)
}

// PrimaryKey returns the columns of the primary key; none without one.
func (t *Table) PrimaryKey() []string {
	if len(t.Keys) > 0 && t.Keys[0].Primary {
		return t.Keys[0].Columns
	}
	return nil
}

// IsUnique reports whether a unique key that holds for all rows has no other columns than these.
func (t *Table) IsUnique(columns []string) bool {
	return slices.ContainsFunc(t.Keys, func(k UniqueKey) bool {
		return !k.Partial && !k.Computed && !slices.ContainsFunc(k.Columns, func(c string) bool { return !slices.Contains(columns, c) })
	})
}

// From returns the table for the FROM of a statement, without the rows of tables that inherit from it.
func (t *Table) From() string {
	if len(t.Children) > 0 {
		return "only " + t.Name.SQL()
	}
	return t.Name.SQL()
}

// finish orders what was read, and says which links cannot be null.
func (c *Catalog) finish() {
	slices.SortFunc(c.Tables, func(a, b *Table) int { return a.Name.Compare(b.Name) })
	c.byName = map[Name]*Table{}
	for _, t := range c.Tables {
		c.byName[t.Name] = t
	}
	for i := range c.ForeignKeys {
		c.ForeignKeys[i].NotNull = c.NotNull(c.ForeignKeys[i])
	}
	slices.SortFunc(c.ForeignKeys, func(a, b ForeignKey) int { return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Name, b.Name)) })
}

// NotNull reports whether no column of a link can be null.
func (c *Catalog) NotNull(f ForeignKey) bool {
	from := c.Table(f.From)
	return from != nil && !slices.ContainsFunc(f.Columns, func(name string) bool {
		column := from.Column(name)
		return column == nil || !column.NotNull
	})
}
