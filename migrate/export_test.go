package migrate

import "strings"

// OnlyStructure is onlyStructure of a file with the given text.
func OnlyStructure(sql string) error {
	f := file{name: "001_test.sql", sql: sql, firstLine: 1}
	f.statements, f.sure = split(sql)
	return onlyStructure([]file{f})
}

// OnIndex is what a statement does to indexes, as text: "CREATE a on s.t".
func OnIndex(sql string) string {
	found, ok := parseOnIndex(tokens(sql))
	if !ok {
		return ""
	}
	return found.kind + " " + found.index + " on " + strings.Join(found.on, "|")
}
