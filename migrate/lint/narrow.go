package lint

import (
	"encoding/json"
	"slices"
)

// narrowTypes are types, as the parser names them, that cannot hold all IDs.
var narrowTypes = []string{"int2", "int4", "float4", "float8", "serial", "serial4", "smallserial", "serial2"}

// narrow warns of columns that get IDs and are of a type that cannot hold them. verify finds those of all shards in the catalog.
func (l *linter) narrow(n node) {
	switch {
	case n.CreateTable != nil:
		t := l.known.table(l.key(n.CreateTable.Relation.Schema, n.CreateTable.Relation.Name))
		for _, e := range n.CreateTable.Elements {
			l.note(t, e)
		}
		for _, e := range n.CreateTable.Elements { // a key may refer to the table itself
			l.refer(t, e)
		}
	case n.AlterTable != nil:
		t := l.known.table(l.key(n.AlterTable.Relation.Schema, n.AlterTable.Relation.Name))
		for _, c := range n.AlterTable.Commands {
			if cmd := c.AlterTableCmd; cmd != nil {
				if cmd.Subtype == "AT_ColumnDefault" && cmd.Def.isID() {
					l.getsIDs(t.columns[cmd.Name], cmd.Name, 0)
				}
				l.note(t, cmd.Def)
				l.refer(t, cmd.Def)
			}
		}
	}
}

// note adds a column, or a primary key, to a table.
func (l *linter) note(t *table, n node) {
	if c := n.Constraint; c != nil && c.Type == "CONSTR_PRIMARY" {
		t.key = names(c.Keys)
	}
	def := n.ColumnDef
	if def == nil || def.Name == "" {
		return
	}
	c := &column{narrow: def.Type.Bounds == nil && slices.Contains(narrowTypes, lastOf(names(def.Type.Names)))}
	t.columns[def.Name] = c
	for _, n := range def.Constraints {
		switch {
		case n.Constraint == nil:
		case n.Constraint.Type == "CONSTR_PRIMARY":
			t.key = []string{def.Name}
		case n.Constraint.Type == "CONSTR_DEFAULT" && exprNode(n.Constraint.Expr).isID():
			l.getsIDs(c, def.Name, def.Location)
		}
	}
}

// refer follows the foreign keys of a column, or of a table.
func (l *linter) refer(t *table, n node) {
	if def := n.ColumnDef; def != nil {
		for _, c := range def.Constraints {
			if c.Constraint != nil && c.Constraint.Type == "CONSTR_FOREIGN" {
				l.follow(t, []string{def.Name}, c.Constraint, def.Location)
			}
		}
	}
	if c := n.Constraint; c != nil && c.Type == "CONSTR_FOREIGN" {
		l.follow(t, names(c.Own), c, c.Location)
	}
}

func (l *linter) follow(t *table, own []string, c *constraint, location int) {
	if c.Other == nil {
		return
	}
	other := l.known.table(l.key(c.Other.Schema, c.Other.Name))
	referred := names(c.OtherColumns)
	if len(referred) == 0 {
		referred = other.key
	}
	for i, name := range own {
		if i < len(referred) && other.columns[referred[i]] != nil && other.columns[referred[i]].ids {
			l.getsIDs(t.columns[name], name, location)
		}
	}
}

// getsIDs notes that a column gets IDs.
func (l *linter) getsIDs(c *column, name string, location int) {
	if c == nil {
		return // of an older text
	}
	if c.narrow && !c.ids {
		l.warn(narrowRule, location, name)
	}
	c.ids = true
}

// isID reports whether an expression is next_id(), perhaps with a cast.
func (n node) isID() bool {
	if n.TypeCast != nil {
		return n.TypeCast.Arg.isID()
	}
	return n.FuncCall != nil && lastOf(names(n.FuncCall.Name)) == "next_id"
}

// exprNode returns the part of an expression that the rules know.
func exprNode(expr json.RawMessage) (n node) {
	_ = json.Unmarshal(expr, &n) // it was read once already
	return n
}
