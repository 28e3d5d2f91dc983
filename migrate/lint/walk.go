package lint

import (
	"maps"
	"slices"
	"strings"
)

// walk calls visit for every object of a parse tree, with its field's name and its nearest known location, in bytes.
func walk(name string, tree any, location int, visit func(name string, body map[string]any, location int)) {
	switch t := tree.(type) {
	case []any:
		for _, element := range t {
			walk(name, element, location, visit)
		}
	case map[string]any:
		if at := locationIn(t); at > 0 {
			location = at
		}
		visit(name, t, location)
		for _, key := range slices.Sorted(maps.Keys(t)) {
			walk(key, t[key], location, visit)
		}
	}
}

func locationIn(body map[string]any) int {
	at, _ := body["location"].(float64)
	return int(at)
}

// anywhere applies the rules for parts that can occur anywhere within a statement.
func (l *linter) anywhere(tree any) {
	foreign := map[string]int{} // the first location of each shard's schema
	walk("", tree, 0, func(name string, body map[string]any, location int) {
		switch name {
		case "UpdateStmt", "DeleteStmt":
			l.withoutWhere(name, body)
		case "FuncCall":
			l.setval(body, location)
		}
		for _, schema := range schemasIn(name, body) {
			if l.isForeign(schema) {
				if at, ok := foreign[schema]; !ok || location < at {
					foreign[schema] = location
				}
			}
		}
	})
	for _, schema := range slices.Sorted(maps.Keys(foreign)) {
		l.warn(otherShard, foreign[schema], schema)
	}
}

// withoutWhere warns of an UPDATE or DELETE of all rows.
func (l *linter) withoutWhere(name string, body map[string]any) {
	relation, _ := body["relation"].(map[string]any)
	schema, _ := relation["schemaname"].(string)
	table, _ := relation["relname"].(string)
	if body["whereClause"] != nil || l.isNew(rangeVar{Schema: schema, Name: table}) {
		return
	}
	r := deleteAll
	if name == "UpdateStmt" {
		r = updateAll
	}
	l.warn(r, locationIn(relation))
}

// setval warns of a call of setval, except on a sequence that the text has created.
func (l *linter) setval(call map[string]any, location int) {
	called := namesIn(call["funcname"])
	if len(called) == 2 && called[0] == "pg_catalog" {
		called = called[1:]
	}
	if !slices.Equal(called, []string{"setval"}) {
		return
	}
	sequence := ""
	walk("", call["args"], 0, func(name string, body map[string]any, _ int) {
		if text, ok := body["sval"].(string); ok && name == "sval" && sequence == "" {
			sequence = text
		}
	})
	if !l.isNew(dotted(strings.Split(sequence, "."))) {
		l.warn(setvalRule, location)
	}
}

// isForeign reports whether a name is a shard's schema that the text must not name.
func (l *linter) isForeign(schema string) bool {
	return schema != l.opts.Schema && l.opts.IsShard != nil && l.opts.IsShard(schema)
}

// schemasIn returns the names in an object, not deeper, that may be schemas.
func schemasIn(name string, body map[string]any) []string {
	var found []string
	add := func(value any) {
		if text, ok := value.(string); ok {
			found = append(found, text)
		}
	}
	add(body["schemaname"])
	add(body["newschema"])
	switch name {
	case "String": // a part of a name
		add(body["sval"])
	case "sval": // a constant, which may be the name of a relation, as for nextval
		if text, ok := body["sval"].(string); ok {
			if schema, relation, dotted := strings.Cut(text, "."); dotted && relation != "" {
				add(schema)
			}
		}
	case "VariableSetStmt":
		if body["name"] == "search_path" {
			walk("", body["args"], 0, func(name string, inner map[string]any, _ int) {
				if name == "sval" {
					add(inner["sval"])
				}
			})
		}
	}
	return found
}
