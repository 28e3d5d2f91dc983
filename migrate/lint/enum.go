package lint

// enumValues warns of a constant that is a value which an earlier statement of the same transaction adds to an enum. The
// parser does not know a constant's type, so a text that is equal is taken for the value.
func (l *linter) enumValues(tree any) {
	if !l.transaction {
		return
	}
	walk("", tree, 0, func(name string, body map[string]any, location int) {
		switch value := textOf(body); {
		case name == "A_Const" && l.added[value]:
			l.warn(enumValueRule, location, value)
		case name == "AlterEnumStmt" && body["oldVal"] == nil:
			if added, ok := body["newVal"].(string); ok {
				l.added[added] = true
			}
		}
	})
}

// textOf returns a constant's text, empty for a constant of another kind.
func textOf(constant map[string]any) string {
	value, _ := constant["sval"].(map[string]any)
	text, _ := value["sval"].(string)
	return text
}
