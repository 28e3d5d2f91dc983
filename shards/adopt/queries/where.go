package queries

// where reads a condition. Of one that need not hold for each row, it reads the queries in it.
func (a *analysis) where(s *scope, expr any, holds bool) {
	switch name, body := kind(expr); name {
	case "":
	case "BoolExpr":
		for _, arg := range list(body["args"]) {
			a.where(s, arg, holds && body["boolop"] == "AND_EXPR")
		}
	case "A_Expr":
		if holds {
			a.comparison(s, body)
		} else {
			a.others(s, body)
		}
	case "SubLink":
		a.subquery(s, body, holds)
	default:
		a.others(s, expr)
	}
}

// comparison reads an expression of two sides that holds for each row.
func (a *analysis) comparison(s *scope, body node) {
	left, right := body["lexpr"], body["rexpr"]
	if operator(body) != "=" {
		a.others(s, body)
		return
	}
	switch body["kind"] {
	case "AEXPR_OP":
		one, two := is(left, "RowExpr"), is(right, "RowExpr")
		if one != nil && two != nil {
			values := list(two["args"])
			for i, arg := range list(one["args"]) {
				if i < len(values) {
					a.equalTo(s, arg, values[i])
				}
			}
			return
		}
		a.equalTo(s, left, right)
	case "AEXPR_IN":
		items := list(is(right, "List")["items"])
		if len(items) == 1 {
			a.equalTo(s, left, items[0])
			return
		}
		a.others(s, right)
		a.several(a.term(s, left))
	case "AEXPR_OP_ANY":
		a.others(s, right)
		a.several(a.term(s, left))
	default:
		a.others(s, body)
	}
}

func (a *analysis) equalTo(s *scope, left, right any) {
	one, two := a.term(s, left), a.term(s, right)
	if one < 0 { // a term reads its own query
		a.others(s, left)
	}
	if two < 0 {
		a.others(s, right)
	}
	a.equal(one, two)
}

// equal makes two terms equal, if both are known.
func (a *analysis) equal(one, two int) {
	if one < 0 || two < 0 {
		return
	}
	if isValue := a.sets.all[two].isValue; a.quiet > 0 && isValue != a.sets.all[one].isValue {
		if !isValue {
			one, two = two, one
		}
		a.later = append(a.later, condition{one, two, a.quiet})
		return
	}
	a.sets.join(one, two)
}

// several notes that a term is one of several values.
func (a *analysis) several(term int) {
	if term < 0 || a.quiet > 0 {
		return
	}
	if root := &a.sets.all[a.sets.of(term)]; root.value == "" {
		root.many = true
	}
}

// outer reads the condition of an outer join. Columns are equal where a row is joined. A value restricts the side whose rows may be
// missing, and never the other.
func (a *analysis) outer(s *scope, expr any, optional []*relation) {
	switch name, body := kind(expr); name {
	case "BoolExpr":
		for _, arg := range list(body["args"]) {
			if body["boolop"] == "AND_EXPR" {
				a.outer(s, arg, optional)
			} else {
				a.others(s, arg)
			}
		}
	case "A_Expr":
		left, right := is(body["lexpr"], "ColumnRef"), is(body["rexpr"], "ColumnRef")
		if body["kind"] != "AEXPR_OP" || operator(body) != "=" || left == nil || right == nil {
			a.others(s, body)
			return
		}
		one, two := a.term(s, body["lexpr"]), a.term(s, body["rexpr"])
		for _, node := range []int{one, two} {
			if node < 0 {
				return
			}
			if fixed, _ := a.sets.fixed(node); fixed && a.among(optional, node) {
				return
			}
		}
		a.sets.join(one, two)
	default:
		a.others(s, expr)
	}
}

// among reports whether a node is a column of one of the relations.
func (a *analysis) among(relations []*relation, node int) bool {
	for _, r := range relations {
		if r.row != nil {
			for _, column := range r.row.columns {
				if column == node {
					return true
				}
			}
		}
		for _, o := range r.outputs {
			if o.node == node {
				return true
			}
		}
	}
	return false
}

// quietly calls read for queries whose values do not restrict the rows of the query s.
func (a *analysis) quietly(s *scope, read func()) {
	before := a.quiet
	if a.quiet == 0 {
		a.quiet = s.depth + 1
	}
	read()
	a.quiet = before
}

// subquery reads a query in a condition, which holds for each row or need not.
func (a *analysis) subquery(s *scope, link node, holds bool) {
	if !holds {
		a.quietly(s, func() { a.query(s.inner(), link["subselect"]) })
		return
	}
	outputs := a.query(s.inner(), link["subselect"])
	test := link["testexpr"]
	if names, _ := strs(link["operName"]); link["subLinkType"] != "ANY_SUBLINK" || len(names) > 0 && names[len(names)-1] != "=" {
		return
	}
	tests := []any{test}
	if row := is(test, "RowExpr"); row != nil {
		tests = list(row["args"])
	}
	for i, test := range tests {
		if i < len(outputs) {
			a.equal(a.term(s, test), outputs[i].node)
		}
	}
}
