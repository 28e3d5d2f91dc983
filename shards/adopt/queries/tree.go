package queries

import (
	"maps"
	"slices"
	"strings"
)

// node is an object of the parse tree.
type node = map[string]any

// kind returns the name and the body of a node such as {"SelectStmt": {…}}.
func kind(tree any) (string, node) {
	object, _ := tree.(node)
	for name, body := range object {
		if inner, ok := body.(node); ok && len(object) == 1 {
			return name, inner
		}
	}
	return "", nil
}

// is returns the body of a node of one kind, or nil.
func is(tree any, name string) node {
	found, body := kind(tree)
	if found != name {
		return nil
	}
	if body == nil {
		return node{}
	}
	return body
}

func list(tree any) []any { all, _ := tree.([]any); return all }

func text(tree any) string { s, _ := tree.(string); return s }

// strs returns the texts of a list of String nodes, and false if another node is among them.
func strs(tree any) ([]string, bool) {
	var found []string
	for _, item := range list(tree) {
		s := is(item, "String")
		if s == nil {
			return found, false
		}
		found = append(found, text(s["sval"]))
	}
	return found, true
}

// operator returns the name of the operator of an A_Expr, without its schema.
func operator(expr node) string {
	names, _ := strs(expr["name"])
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1]
}

// each calls visit for the objects of a tree by their kinds, and goes below those for which it returns true.
func each(tree any, visit func(kind string, body node) bool) {
	switch t := tree.(type) {
	case []any:
		for _, item := range t {
			each(item, visit)
		}
	case node:
		for _, name := range slices.Sorted(maps.Keys(t)) {
			body, ok := t[name].(node)
			if ok && name != "" && strings.ToUpper(name[:1]) == name[:1] && !visit(name, body) {
				continue
			}
			each(t[name], visit)
		}
	}
}

// rangeVars returns the relations that a tree names.
func rangeVars(tree any) []node {
	var found []node
	switch t := tree.(type) {
	case []any:
		for _, item := range t {
			found = append(found, rangeVars(item)...)
		}
	case node:
		if text(t["relname"]) != "" {
			return []node{t}
		}
		for _, name := range slices.Sorted(maps.Keys(t)) {
			found = append(found, rangeVars(t[name])...)
		}
	}
	return found
}
