package lint

import "slices"

// narrowTypes are types, as the parser names them, that cannot hold all IDs.
var narrowTypes = []string{"int2", "int4", "float4", "float8"}

// narrow warns of columns that get IDs and are of a type that cannot hold them: by default, or by a key that refers to a
// table of this text whose IDs are made by default. verify finds the others in the catalog.
func (l *linter) narrow(tree any) {
	walk("", tree, 0, func(name string, body map[string]any, _ int) {
		if name == "CreateStmt" && makesIDs(body["tableElts"]) {
			l.ids[l.relationKey(body["relation"])] = true
		}
	})
	walk("", tree, 0, func(name string, body map[string]any, location int) {
		if name == "ColumnDef" && slices.Contains(narrowTypes, typeOf(body)) && (defaultIsID(body) || l.ids[l.refersTo(body)]) {
			l.warn(narrowRule, location, body["colname"])
		}
	})
}

// makesIDs reports whether a table has a column whose default is an ID.
func makesIDs(columns any) bool {
	found := false
	walk("", columns, 0, func(name string, body map[string]any, _ int) {
		found = found || name == "ColumnDef" && defaultIsID(body)
	})
	return found
}

// typeOf returns the last part of the name of a column's type.
func typeOf(column map[string]any) string {
	if typ, ok := column["typeName"].(map[string]any); ok && typ["arrayBounds"] == nil {
		return lastOf(namesIn(typ["names"]))
	}
	return ""
}

// defaultIsID reports whether a column's default is next_id(), perhaps with a cast.
func defaultIsID(column map[string]any) bool {
	for _, c := range constraintsOf(column) {
		expr, _ := c["raw_expr"].(map[string]any)
		if cast, ok := expr["TypeCast"].(map[string]any); ok {
			expr, _ = cast["arg"].(map[string]any)
		}
		call, _ := expr["FuncCall"].(map[string]any)
		if c["contype"] == "CONSTR_DEFAULT" && lastOf(namesIn(call["funcname"])) == "next_id" {
			return true
		}
	}
	return false
}

// refersTo returns the key of the table that a column's REFERENCES names, empty for none.
func (l *linter) refersTo(column map[string]any) string {
	for _, c := range constraintsOf(column) {
		if c["contype"] == "CONSTR_FOREIGN" {
			return l.relationKey(c["pktable"])
		}
	}
	return ""
}

func (l *linter) relationKey(relation any) string {
	r, _ := relation.(map[string]any)
	table, _ := r["relname"].(string)
	return l.key(schemaOf(relation), table)
}

func constraintsOf(column map[string]any) []map[string]any {
	list, _ := column["constraints"].([]any)
	var found []map[string]any
	for _, element := range list {
		node, _ := element.(map[string]any)
		if c, ok := node["Constraint"].(map[string]any); ok {
			found = append(found, c)
		}
	}
	return found
}
