package queries

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards/adopt"
)

// target adds the table that a statement writes.
func (a *analysis) target(s *scope, body node) *relation {
	relation := &relation{}
	named, _ := body["relation"].(node)
	relation.name = text(named["relname"])
	if outputs, ok := a.view(named); ok {
		relation.outputs = outputs
		for _, r := range a.rows {
			r.written = true
		}
	} else if relation.row = a.table(named, s.depth); relation.row != nil {
		relation.row.written = true
	}
	if alias, ok := named["alias"].(node); ok {
		relation.name = text(alias["aliasname"])
	}
	s.own = append(s.own, relation)
	return relation
}

func (a *analysis) insert(s *scope, body node) []output {
	a.with(s, body["withClause"])
	source := s.inner()
	into := a.target(s, body)
	if into.row == nil {
		a.query(source, body["selectStmt"])
		return a.targets(s, body["returningList"])
	}
	var columns []string
	for _, item := range list(body["cols"]) {
		columns = append(columns, text(is(item, "ResTarget")["name"]))
	}
	if len(columns) == 0 {
		for _, c := range into.row.table.Columns {
			columns = append(columns, c.Name)
		}
	}
	into.row.given = map[string]bool{}
	give := func(i int, node int, several bool) {
		if i >= len(columns) {
			return
		}
		into.row.given[columns[i]] = true
		column := a.columnOfRow(into.row, columns[i])
		switch {
		case column < 0 || node < 0:
		case several:
			a.several(column)
		default:
			a.equal(column, node)
		}
	}
	query := is(body["selectStmt"], "SelectStmt")
	lists := list(query["valuesLists"])
	for _, item := range lists {
		a.others(source, item)
	}
	switch {
	case len(lists) > 0:
		a.with(source, query["withClause"])
		for i := range list(is(lists[0], "List")["items"]) {
			nodes := make([]int, len(lists))
			known := true
			for n, item := range lists {
				values := list(is(item, "List")["items"])
				nodes[n] = -1
				if i < len(values) && is(values[i], "SetToDefault") == nil {
					nodes[n] = a.term(source, values[i])
				} else {
					known = false
				}
			}
			if known {
				give(i, nodes[0], slices.ContainsFunc(nodes, func(n int) bool { return n != nodes[0] }))
			}
		}
	case query != nil:
		for i, o := range a.query(source, body["selectStmt"]) {
			give(i, o.node, false)
		}
	}
	if conflict, ok := body["onConflictClause"].(node); ok {
		a.checkSet(into.row, conflict["targetList"])
		a.others(s, conflict["targetList"])
		a.others(s, conflict["whereClause"])
	}
	return a.targets(s, body["returningList"])
}

func (a *analysis) update(s *scope, body node) []output {
	a.with(s, body["withClause"])
	written := a.target(s, body)
	for _, item := range list(body["fromClause"]) {
		a.from(s, item)
	}
	a.where(s, body["whereClause"], true)
	a.others(s, body["targetList"])
	if written.row != nil {
		a.checkSet(written.row, body["targetList"])
	}
	return a.targets(s, body["returningList"])
}

func (a *analysis) remove(s *scope, body node) []output {
	a.with(s, body["withClause"])
	a.target(s, body)
	for _, item := range list(body["usingClause"]) {
		a.from(s, item)
	}
	a.where(s, body["whereClause"], true)
	return a.targets(s, body["returningList"])
}

// keyColumns returns the columns of a table that say in which shard a row is.
func keyColumns(t *adopt.TablePlan) []string {
	route := t.Way()
	if len(route.Links) > 0 {
		return route.Links[0].Columns
	}
	return []string{route.Column}
}

// checkSet notes that a statement sets the key of a row.
func (a *analysis) checkSet(r *row, targets any) {
	if !r.plan.Is.Sharded() {
		return
	}
	for _, item := range list(targets) {
		if name := text(is(item, "ResTarget")["name"]); slices.Contains(keyColumns(r.plan), name) {
			a.moves = true
			a.changes = append(a.changes, fmt.Sprintf("it sets %s of %s, which says where a row is: leave that out, or delete and insert the row", name, r.plan.Table))
		}
	}
}

// checkInsert notes that an INSERT does not say where its row goes.
func (a *analysis) checkInsert(r *row) {
	if r.given == nil || !r.plan.Is.Sharded() {
		return
	}
	var missing []string
	for _, column := range keyColumns(r.plan) {
		if !r.given[column] {
			missing = append(missing, column)
		}
	}
	if len(missing) == 0 {
		return
	}
	why := fmt.Sprintf("its INSERT into %s gives no %s, so it goes to no shard", r.plan.Table, strings.Join(missing, ", "))
	if r.plan.Table == a.plan.Key.Table {
		why += ": make the key first, as kiloshard help sign-up does"
	}
	a.changes = append(a.changes, why)
}
