package lint

import (
	"slices"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// bareNames warns of a check, an index or a generated column that calls a function which names what is in the shard without its
// schema. migrate up finds more of them in the catalogs; see sql.BareNamesQuery.
func (l *linter) bareNames(tree any) {
	fields, _ := tree.(map[string]any)
	for name, body := range fields {
		statement, _ := body.(map[string]any)
		l.named(name, statement)
		switch name {
		case "CreateFunctionStmt":
			l.createFunction(statement)
		case "AlterFunctionStmt":
			called, _ := statement["func"].(map[string]any)
			if f := l.known.functions[lastOf(namesIn(called["objname"]))]; f != nil {
				f.setPath(statement["actions"])
			}
		case "DropStmt":
			for _, object := range elements(statement["objects"], "ObjectWithArgs") {
				delete(l.known.functions, lastOf(namesIn(object["objname"])))
			}
		}
	}
	walk("", tree, 0, func(name string, body map[string]any, location int) {
		kind, _ := body["contype"].(string)
		switch what := map[string]string{"CONSTR_CHECK": "a check", "CONSTR_GENERATED": "a generated column", "CONSTR_EXCLUSION": "an exclusion constraint"}[kind]; {
		case what != "":
			l.callsFor(what, body, location)
		case name == "IndexStmt":
			l.callsFor("an index", body, location)
		}
	})
}

// named notes the name of a function, a table or a type that a statement makes.
func (l *linter) named(statement string, body map[string]any) {
	if l.known.named == nil {
		l.known.named, l.known.functions = map[string]bool{}, map[string]*function{}
	}
	switch statement {
	case "CreateStmt", "ViewStmt":
		for _, field := range []string{"relation", "view"} {
			if r, ok := body[field].(map[string]any); ok {
				name, _ := r["relname"].(string)
				l.known.named[name] = true
				if statement == "ViewStmt" && body["replace"] != true {
					l.create(rangeVar{Schema: schemaOf(r), Name: name}, false)
				}
			}
		}
	case "CreateFunctionStmt", "CreateEnumStmt", "CreateDomainStmt":
		for _, field := range []string{"funcname", "typeName", "domainname"} {
			if names := namesIn(body[field]); len(names) > 0 {
				l.known.named[lastOf(names)] = true
			}
		}
	case "CompositeTypeStmt":
		r, _ := body["typevar"].(map[string]any)
		name, _ := r["relname"].(string)
		l.known.named[name] = true
	}
}

// createFunction notes a function, and warns of one that is in use already.
func (l *linter) createFunction(statement map[string]any) {
	name := lastOf(namesIn(statement["funcname"]))
	f := &function{}
	if old := l.known.functions[name]; old != nil {
		f.user = old.user
		if statement["replace"] != true { // one with other arguments
			f.names = old.names
		}
	}
	for _, o := range elements(statement["options"], "DefElem") {
		if o["defname"] == "as" {
			for _, body := range textsIn(o["arg"]) {
				f.names = append(f.names, unqualified(body)...)
			}
		}
	}
	f.setPath(statement["options"])
	l.known.functions[name] = f
	l.warnOfNames(name, f, 0)
}

// setPath notes whether options of a function set its search_path.
func (f *function) setPath(options any) {
	for _, o := range elements(options, "DefElem") {
		arg, _ := o["arg"].(map[string]any)
		if set, ok := arg["VariableSetStmt"].(map[string]any); ok && o["defname"] == "set" && (set["name"] == "search_path" || set["kind"] == "VAR_RESET_ALL") {
			f.hasPath = set["kind"] != "VAR_RESET" && set["kind"] != "VAR_RESET_ALL" && set["kind"] != "VAR_SET_DEFAULT"
		}
	}
}

// callsFor warns of the functions that an expression calls.
func (l *linter) callsFor(what string, expression map[string]any, location int) {
	walk("", expression, location, func(name string, body map[string]any, location int) {
		if name != "FuncCall" {
			return
		}
		called := lastOf(namesIn(body["funcname"]))
		if f := l.known.functions[called]; f != nil {
			f.user = what
			l.warnOfNames(called, f, location)
		}
	})
}

// warnOfNames warns of a function that is called for rows that are written, and names what texts have made.
func (l *linter) warnOfNames(name string, f *function, location int) {
	if i := slices.IndexFunc(f.names, func(n string) bool { return l.known.named[n] }); i >= 0 && f.user != "" && !f.hasPath {
		l.warn(bareNamesRule, location, f.user, name, f.names[i])
	}
}

// unqualified returns the names in a function's body that have no schema and may be those of functions, types or tables.
func unqualified(body string) (found []string) {
	tokens := slices.Collect(sqltext.Tokens(body))
	at := func(i int) sqltext.Token {
		if i < 0 || i >= len(tokens) {
			return sqltext.Token{}
		}
		return tokens[i]
	}
	for i, t := range tokens {
		before := at(i - 1)
		if t.Name() == "" || before.Is(".") || at(i+1).Is(".") {
			continue
		}
		if at(i+1).Is("(") || before.Is(":") || slices.ContainsFunc([]string{"from", "join", "into", "update"}, before.Is) {
			found = append(found, t.Name())
		}
	}
	return found
}

// elements returns the objects of a kind in a list of a parse tree.
func elements(list any, kind string) (found []map[string]any) {
	all, _ := list.([]any)
	for _, e := range all {
		object, _ := e.(map[string]any)
		if body, ok := object[kind].(map[string]any); ok {
			found = append(found, body)
		}
	}
	return found
}
