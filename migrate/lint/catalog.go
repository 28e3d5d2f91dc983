package lint

import (
	"regexp"
	"strings"
)

// Words of a text that looks for names in Postgres's catalogs.
var (
	catalogPattern = regexp.MustCompile(`(?i)\b(information_schema\.\w+|pg_(class|type|proc|constraint|trigger|index(es)?|tables|views|matviews|sequences|attribute|enum|policies))\b`)
	namePattern    = regexp.MustCompile(`(?i)\b((rel|typ|pro|con|tg|index|table|view|matview|sequence|policy)name|(table|routine|trigger|constraint|sequence)_name)\b`)
	schemaPattern  = regexp.MustCompile(`(?i)namespace|nspname|schemaname|\b(table|routine|trigger|constraint|sequence|current)_schema|regclass|regtype|regproc|is_visible`)
)

// byName warns of a statement that looks for an object by its name alone in a catalog, which has the objects of all shards.
// It looks at words, also at those of a DO block or a function.
func (l *linter) byName() {
	text := l.text[l.now.start:l.now.end]
	found := catalogPattern.FindStringIndex(text)
	if found == nil || !namePattern.MatchString(text) || schemaPattern.MatchString(text) {
		return
	}
	l.warn(byNameRule, l.now.start+found[0], strings.ToLower(text[found[0]:found[1]]))
}
