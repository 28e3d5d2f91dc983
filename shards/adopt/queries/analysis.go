package queries

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltree"
	"github.com/kiloshard/kiloshard/shards/adopt"
	"github.com/kiloshard/kiloshard/shards/tables"
)

// analysis is what is known about one statement.
type analysis struct {
	plan    *adopt.Plan
	schema  *Schema
	sets    sets
	values  map[string]int // nodes, by value
	rows    []*row         // each table in each place
	changes []string       // why it cannot stay as it is
	moves   bool           // it sets the key of a row
	merges  []string       // what has to be merged if it goes to several shards
	unseen  []string       // what it does that its text does not show
	later   []condition    // that hold for inner queries only
	views   int            // that are being expanded
	quiet   int            // the depth from which on values do not restrict outer queries; 0 where all do
}

// condition is a column that has a value, in a query whose rows the outer ones do not depend on.
type condition struct{ column, value, depth int }

// read parses a text and returns the analyses of its statements.
func (s *Schema) read(sql string) ([]*analysis, error) {
	statements, err := sqltree.Parse(sql)
	if err != nil {
		return nil, err
	}
	var all []*analysis
	for _, statement := range statements {
		var tree any
		if err := json.Unmarshal(statement.Tree, &tree); err != nil {
			return nil, err
		}
		a := &analysis{plan: s.Plan, schema: s, values: map[string]int{}}
		a.statement(tree)
		a.settle()
		all = append(all, a)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no statement in it")
	}
	return all, nil
}

// statement reads a statement of any kind.
func (a *analysis) statement(tree any) {
	top := &scope{ctes: map[string][]output{}}
	switch name, body := kind(tree); name {
	case "SelectStmt":
		a.noteMerges(body)
		a.query(top, tree)
	case "InsertStmt", "UpdateStmt", "DeleteStmt":
		a.query(top, tree)
	case "ExplainStmt", "DeclareCursorStmt", "PrepareStmt":
		a.statement(body["query"])
	case "CreateTableAsStmt":
		a.statement(body["query"])
		a.changes = append(a.changes, "it makes a table")
	case "CopyStmt":
		if body["query"] != nil {
			a.statement(body["query"])
			return
		}
		a.utility(tree, "COPY of a sharded table: each shard has a part of it")
	case "MergeStmt":
		a.utility(tree, "MERGE is not read: write INSERT … ON CONFLICT, or read it yourself")
	case "TransactionStmt", "VariableSetStmt", "VariableShowStmt", "DeallocateStmt", "DiscardStmt", "ListenStmt", "UnlistenStmt", "NotifyStmt",
		"FetchStmt", "ClosePortalStmt", "CheckPointStmt", "VacuumStmt", "ExecuteStmt", "ConstraintsSetStmt":
	case "DoStmt", "CallStmt":
		a.unseen = append(a.unseen, "what its code does")
	case "LockStmt", "TruncateStmt":
		a.utility(tree, "a statement for whole tables: it means those of one shard")
	default:
		a.utility(tree, "DDL of a sharded table: run it by kiloshard migrate")
	}
}

// utility reads a statement of which only the tables are known.
func (a *analysis) utility(tree any, why string) {
	for _, relation := range rangeVars(tree) {
		if r := a.table(relation, 0); r != nil && r.plan.Is.Sharded() {
			a.changes = append(a.changes, why)
			return
		}
	}
	each(tree, func(kind string, body node) bool { // DROP and such name relations as lists
		if kind == "List" {
			if names, ok := strs(body["items"]); ok && len(names) > 0 {
				if t := a.schema.find(names); t != nil && a.plan.Table(t.Name).Is.Sharded() {
					a.changes = append(a.changes, why)
				}
			}
		}
		return true
	})
}

// table adds a table to the statement; nil if the plan has no such table.
func (a *analysis) table(relation node, depth int) *row {
	names := []string{text(relation["relname"])}
	if schema := text(relation["schemaname"]); schema != "" {
		names = []string{schema, names[0]}
	}
	t := a.schema.find(names)
	if t == nil {
		return nil
	}
	r := &row{plan: a.plan.Table(t.Name), table: t, columns: map[string]int{}, depth: depth}
	a.rows = append(a.rows, r)
	return r
}

// settle applies the conditions that hold for inner queries only: a column has the value, unless it must be equal to one of an outer
// query, which the value does not restrict.
func (a *analysis) settle() {
	for _, c := range a.later {
		if a.sets.all[a.sets.of(c.column)].depth >= c.depth {
			a.sets.join(c.column, c.value)
		}
	}
}

var aggregates = map[string]bool{"count": true, "sum": true, "min": true, "max": true, "avg": true, "array_agg": true, "string_agg": true, "json_agg": true, "jsonb_agg": true, "bool_or": true, "bool_and": true}

// noteMerges notes what the answers of several shards need.
func (a *analysis) noteMerges(body node) {
	for _, part := range []struct{ field, text string }{
		{"groupClause", "GROUP BY"}, {"distinctClause", "DISTINCT"}, {"sortClause", "ORDER BY"}, {"limitCount", "LIMIT"}, {"limitOffset", "OFFSET"},
	} {
		if body[part.field] != nil {
			a.merges = append(a.merges, part.text)
		}
	}
	each(body["targetList"], func(kind string, call node) bool {
		if names, _ := strs(call["funcname"]); kind == "FuncCall" && len(names) > 0 && aggregates[names[len(names)-1]] {
			a.merges = append(a.merges, strings.ToUpper(names[len(names)-1]))
		}
		return kind != "SubLink"
	})
}

// Schema is what a statement is read against.
type Schema struct {
	Plan  *adopt.Plan
	Views map[tables.Name]string // their definitions, with a schema for each name

	functions map[string]string // names of functions whose code names sharded tables: which
}

// find returns the table that dotted names mean, or nil.
func (s *Schema) find(names []string) *tables.Table {
	if len(names) > 2 {
		names = names[len(names)-2:]
	}
	t, err := s.Plan.Catalog().Find(names...)
	if err != nil {
		return nil
	}
	return t
}
