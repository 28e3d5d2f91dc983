package migrate

import "strings"

// Split is split, with the texts of the statements.
func Split(sql string) ([]string, bool) {
	found, sure := split(sql)
	texts := make([]string, len(found))
	for i, s := range found {
		texts[i] = sql[s.start:s.end]
	}
	return texts, sure
}

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
