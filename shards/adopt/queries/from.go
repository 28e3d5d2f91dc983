package queries

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltree"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// query reads a SELECT, INSERT, UPDATE or DELETE, and returns the columns that it returns.
func (a *analysis) query(s *scope, tree any) []output {
	switch name, body := kind(tree); name {
	case "SelectStmt":
		return a.selects(s, body)
	case "InsertStmt":
		return a.insert(s, body)
	case "UpdateStmt":
		return a.update(s, body)
	case "DeleteStmt":
		return a.remove(s, body)
	case "MergeStmt":
		a.utility(tree, "MERGE is not read")
	}
	return nil
}

// with reads the CTEs of a query.
func (a *analysis) with(s *scope, clause any) {
	with, _ := clause.(node)
	for _, item := range list(with["ctes"]) {
		cte := is(item, "CommonTableExpr")
		name := text(cte["ctename"])
		inner := s.inner()
		if with["recursive"] == true {
			if union := is(cte["ctequery"], "SelectStmt"); union["larg"] != nil {
				if left, ok := union["larg"].(node); ok { // its second part sees the rows of the first
					inner.ctes[name] = named(a.selects(s.inner(), left), cte["aliascolnames"])
				}
			}
		}
		s.ctes[name] = named(a.query(inner, cte["ctequery"]), cte["aliascolnames"])
	}
}

// named gives outputs the names of an alias.
func named(outputs []output, names any) []output {
	outputs = slices.Clone(outputs)
	all, _ := strs(names)
	for i, name := range all {
		if i < len(outputs) {
			outputs[i].name = name
		}
	}
	return outputs
}

func (a *analysis) selects(s *scope, body node) []output {
	a.with(s, body["withClause"])
	if left, ok := body["larg"].(node); ok { // UNION and such
		right, _ := body["rarg"].(node)
		outputs, others := a.selects(s.inner(), left), a.selects(s.inner(), right)
		for i := range outputs { // a row has the value of one of both
			if i >= len(others) || outputs[i].node < 0 || others[i].node < 0 || a.sets.of(outputs[i].node) != a.sets.of(others[i].node) {
				outputs[i].node = -1
			}
		}
		return outputs
	}
	for _, item := range list(body["fromClause"]) {
		a.from(s, item)
	}
	for _, item := range list(body["valuesLists"]) {
		a.others(s, item)
	}
	a.where(s, body["whereClause"], true)
	for _, part := range []string{"targetList", "havingClause", "groupClause", "sortClause", "windowClause", "limitCount", "limitOffset"} {
		a.others(s, body[part])
	}
	return a.targets(s, body["targetList"])
}

// targets returns the columns of a list of results.
func (a *analysis) targets(s *scope, targets any) []output {
	var all []output
	for _, item := range list(targets) {
		target := is(item, "ResTarget")
		name, value := text(target["name"]), target["val"]
		if ref := is(value, "ColumnRef"); ref != nil {
			names, plain := strs(ref["fields"])
			if !plain { // a star
				for _, r := range s.own {
					if len(names) == 0 || r.name == names[len(names)-1] {
						all = append(all, a.star(r)...)
					}
				}
				continue
			}
			if name == "" {
				name = names[len(names)-1]
			}
		}
		o := output{name, -1}
		if is(value, "SubLink") == nil { // read among the others
			o.node = a.term(s, value)
		}
		all = append(all, o)
	}
	return all
}

// from reads an item of a FROM clause, and returns the relations that it adds.
func (a *analysis) from(s *scope, item any) []*relation {
	add := func(r *relation, alias any) []*relation {
		if names, ok := alias.(node); ok {
			r.name = text(names["aliasname"])
			if r.row == nil {
				r.outputs = named(r.outputs, names["colnames"])
			}
		}
		s.own = append(s.own, r)
		return []*relation{r}
	}
	switch name, body := kind(item); name {
	case "RangeVar":
		r := &relation{name: text(body["relname"])}
		if outputs, ok := s.cte(r.name); ok && text(body["schemaname"]) == "" {
			r.outputs = outputs
		} else if outputs, ok := a.view(body); ok {
			r.outputs = outputs
		} else {
			r.row = a.table(body, s.depth)
		}
		return add(r, body["alias"])
	case "RangeSubselect":
		inner := s.inner()
		return add(&relation{outputs: a.query(inner, body["subquery"])}, body["alias"])
	case "JoinExpr":
		return a.joins(s, body)
	case "RangeFunction":
		a.others(s, body["functions"])
		return add(&relation{}, body["alias"])
	default:
		a.others(s, item)
	}
	return nil
}

// joins reads a JOIN.
func (a *analysis) joins(s *scope, body node) []*relation {
	kindOfJoin := text(body["jointype"])
	side := func(item any, optional bool) (relations []*relation) {
		if !optional {
			return a.from(s, item)
		}
		a.quietly(s, func() { relations = a.from(s, item) })
		return relations
	}
	left := side(body["larg"], kindOfJoin == "JOIN_RIGHT" || kindOfJoin == "JOIN_FULL")
	right := side(body["rarg"], kindOfJoin == "JOIN_LEFT" || kindOfJoin == "JOIN_FULL")
	all := slices.Concat(left, right)
	columns, _ := strs(body["usingClause"])
	for _, column := range columns {
		a.equal(a.columnAmong(left, column), a.columnAmong(right, column))
	}
	switch {
	case body["quals"] == nil:
	case kindOfJoin == "JOIN_LEFT":
		a.outer(s, body["quals"], right)
	case kindOfJoin == "JOIN_RIGHT":
		a.outer(s, body["quals"], left)
	case kindOfJoin == "JOIN_FULL":
		a.outer(s, body["quals"], all)
	default:
		a.where(s, body["quals"], true)
	}
	return all
}

func (a *analysis) columnAmong(relations []*relation, column string) int {
	for _, r := range relations {
		if node := a.columnOf(r, column); node >= 0 {
			return node
		}
	}
	return -1
}

// maxViews is how deep views over views are read.
const maxViews = 20

// view returns the columns of a view, whose tables it adds to the statement; false for what is no view.
func (a *analysis) view(relation node) ([]output, bool) {
	name := tables.Name{Schema: text(relation["schemaname"]), Table: text(relation["relname"])}
	definition, ok := a.schema.Views[name]
	if name.Schema == "" {
		if name.Schema = "public"; !ok {
			definition, ok = a.schema.Views[name]
		}
		if !ok && a.schema.find([]string{name.Table}) == nil {
			for other, text := range a.schema.Views {
				if other.Table == name.Table {
					definition, ok = text, true
				}
			}
		}
	}
	if !ok || a.views >= maxViews {
		return nil, false
	}
	a.views++
	defer func() { a.views-- }()
	statements, err := sqltree.Parse(definition)
	if err != nil || len(statements) != 1 {
		a.unseen = append(a.unseen, "the view "+name.String())
		return nil, true
	}
	var tree any
	if err := json.Unmarshal(statements[0].Tree, &tree); err != nil {
		a.unseen = append(a.unseen, "the view "+name.String())
		return nil, true
	}
	return a.query((&scope{ctes: map[string][]output{}}).inner(), tree), true
}

// others reads the queries and the calls of functions within an expression that is no condition.
func (a *analysis) others(s *scope, tree any) {
	each(tree, func(kind string, body node) bool {
		switch kind {
		case "SubLink":
			a.subquery(s, body, false)
			a.others(s, body["testexpr"])
			return false
		case "SelectStmt":
			a.selects(s.inner(), body)
			return false
		case "FuncCall":
			if names, _ := strs(body["funcname"]); len(names) > 0 {
				if sees, ok := a.schema.functions[names[len(names)-1]]; ok {
					a.unseen = append(a.unseen, strings.Join(names, ".")+", which names "+sees)
				}
			}
		}
		return true
	})
}
