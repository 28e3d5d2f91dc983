package migrate

import "strings"

// OnIndex is what a statement does to indexes, as text: "CREATE a on s.t".
func OnIndex(sql string) string {
	found, ok := parseOnIndex(tokens(sql))
	if !ok {
		return ""
	}
	return found.kind + " " + found.index + " on " + strings.Join(found.on, "|")
}
