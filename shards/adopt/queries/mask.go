package queries

import (
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// masked returns a text without the contents of its strings: the statistics keep those of ALTER ROLE … PASSWORD and the like, and a log
// has those of users.
func masked(sql string) string {
	var b strings.Builder
	done := 0
	for token := range sqltext.Tokens(sql) {
		if token.Kind == sqltext.String || token.Kind == sqltext.Comment {
			b.WriteString(sql[done:token.Start] + "'…'")
			done = token.End()
		}
	}
	return b.String() + sql[done:]
}
