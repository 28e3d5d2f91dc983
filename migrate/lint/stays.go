package lint

// unmovable are statements that make what has no statement in package snapshot.
var unmovable = map[string]string{
	"CreateForeignTableStmt": "a foreign table", "CreateConversionStmt": "a conversion", "CreateOpClassStmt": "an operator class", "CreateOpFamilyStmt": "an operator family",
}

// definitions are those of a DefineStmt, by its kind.
var definitions = map[string]string{
	"OBJECT_AGGREGATE": "an aggregate", "OBJECT_OPERATOR": "an operator", "OBJECT_TYPE": "a base type", "OBJECT_COLLATION": "a collation",
	"OBJECT_TSCONFIGURATION": "a text search configuration", "OBJECT_TSDICTIONARY": "a text search dictionary",
	"OBJECT_TSPARSER": "a text search parser", "OBJECT_TSTEMPLATE": "a text search template",
}

// stays warns of objects that keep a shard on its host: neither a move nor a snapshot can make them.
func (l *linter) stays(tree any) {
	fields, _ := tree.(map[string]any)
	for name, body := range fields {
		statement, _ := body.(map[string]any)
		kind, _ := statement["kind"].(string)
		switch what := unmovable[name]; {
		case len(l.opts.Shared) > 0: // it runs in no shard
		case name == "DefineStmt" && definitions[kind] != "":
			l.warn(staysRule, 0, definitions[kind])
		case name == "CreateStmt" && statement["ofTypename"] != nil && !isTemporary(statement["relation"]):
			l.warn(staysRule, 0, "a table of a type")
		case what != "":
			l.warn(staysRule, 0, what)
		}
	}
}

func isTemporary(relation any) bool {
	r, _ := relation.(map[string]any)
	return r["relpersistence"] == "t"
}
