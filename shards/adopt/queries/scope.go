package queries

import (
	"fmt"
	"strconv"

	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// output is a column that a query returns, or that a relation has.
type output struct {
	name string
	node int // in sets; -1 for a value that is not known to be equal to anything
}

// relation is what a FROM clause names: a table, a subquery, a CTE, a view or a function.
type relation struct {
	name    string // in the query
	row     *row   // of a table; nil of others
	outputs []output
}

// row is one table in one place of a statement.
type row struct {
	plan    *adopt.TablePlan
	table   *tables.Table
	columns map[string]int // nodes in sets
	depth   int
	written bool
	given   map[string]bool // columns that an INSERT gives
}

// scope is the names that a query sees: its own, and those of the queries around it.
type scope struct {
	above *scope
	own   []*relation
	ctes  map[string][]output
	depth int // 0 of the outermost query
}

func (s *scope) inner() *scope {
	return &scope{above: s, ctes: map[string][]output{}, depth: s.depth + 1}
}

func (s *scope) cte(name string) ([]output, bool) {
	for ; s != nil; s = s.above {
		if outputs, ok := s.ctes[name]; ok {
			return outputs, true
		}
	}
	return nil, false
}

// column returns the node of a column, with or without the name of its relation; -1 for one that is not known.
func (a *analysis) column(s *scope, names []string) int {
	name := names[len(names)-1]
	for ; s != nil; s = s.above {
		for _, r := range s.own {
			if len(names) > 1 && r.name != names[len(names)-2] {
				continue
			}
			if node := a.columnOf(r, name); node >= 0 {
				return node
			}
		}
	}
	return -1
}

// columnOf returns the node of a relation's column, or -1.
func (a *analysis) columnOf(r *relation, name string) int {
	if r.row != nil {
		return a.columnOfRow(r.row, name)
	}
	for _, o := range r.outputs {
		if o.name == name {
			return o.node
		}
	}
	return -1
}

func (a *analysis) columnOfRow(r *row, name string) int {
	if node, ok := r.columns[name]; ok {
		return node
	}
	column := r.table.Column(name)
	if column == nil {
		return -1
	}
	node := a.sets.add("", r.depth)
	a.sets.all[node].isWhole = column.IsWhole()
	r.columns[name] = node
	return node
}

// star returns the columns of relations.
func (a *analysis) star(relations ...*relation) []output {
	var all []output
	for _, r := range relations {
		if r.row == nil {
			all = append(all, r.outputs...)
			continue
		}
		for _, c := range r.row.table.Columns {
			all = append(all, output{c.Name, a.columnOfRow(r.row, c.Name)})
		}
	}
	return all
}

// term returns the node of an expression: a column, a value, a parameter or a subquery of one column; -1 for others.
func (a *analysis) term(s *scope, expr any) int {
	switch name, body := kind(expr); name {
	case "ColumnRef":
		if names, ok := strs(body["fields"]); ok {
			return a.column(s, names)
		}
	case "ParamRef":
		return a.value(fmt.Sprintf("$%v", body["number"]))
	case "A_Const":
		for _, of := range []string{"ival", "fval", "sval", "bsval", "boolval"} {
			if value, ok := body[of].(node); ok {
				return a.value(of + " " + constant(of, value[of]))
			}
		}
	case "TypeCast":
		if node := a.term(s, body["arg"]); node >= 0 && (a.sets.all[node].isValue || keeps(body["typeName"], a.sets.all[node].isWhole)) {
			return node
		}
	case "SubLink":
		if body["subLinkType"] == "EXPR_SUBLINK" {
			if outputs := a.query(s.inner(), body["subselect"]); len(outputs) > 0 {
				return outputs[0].node
			}
		}
	}
	return -1
}

// keeps reports whether a cast to a type takes different values of a column to different ones.
func keeps(typeName any, isWhole bool) bool {
	body, _ := typeName.(node)
	names, _ := strs(body["names"])
	if len(names) == 0 || body["typmods"] != nil || body["arrayBounds"] != nil {
		return false
	}
	switch names[len(names)-1] {
	case "text", "varchar":
		return true
	case "int2", "int4", "int8":
		return isWhole
	}
	return false
}

// constant returns a constant of the parse tree as text.
func constant(kind string, value any) string {
	switch v := value.(type) {
	case nil: // the parser leaves out a zero and an empty text
		if kind == "ival" {
			return "0"
		}
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// value returns the node of a value, which is the same wherever it stands in the statement.
func (a *analysis) value(text string) int {
	if node, ok := a.values[text]; ok {
		return node
	}
	a.values[text] = a.sets.add(text, innermost)
	return a.values[text]
}
