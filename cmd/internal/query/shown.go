package query

import (
	"regexp"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// mostShown is how many bytes of a SQL text an audit line has.
const mostShown = 1000

// shownSQL returns a SQL text for an audit line: on one line, without comments, and with … for each string and number. It ends
// before anything that may be a password: behind the word password, and from a string that servers read differently, since with
// standard_conforming_strings off a backslash hides its end.
func shownSQL(text string) string {
	shown, end := "", 0
	for t := range sqltext.Tokens(text) {
		if t.Start > end && end > 0 {
			shown += " "
		}
		end = t.End()
		isValue := t.Kind == sqltext.String || t.Kind == sqltext.Number
		switch {
		case t.Open, isValue && strings.HasPrefix(t.Text, "'") && strings.Contains(t.Text, `\`):
			return shown + "…"
		case t.Is("password"):
			return shown + t.Text + " …"
		case isValue:
			shown += "…"
		default:
			shown += t.Text
		}
		if len(shown) > mostShown {
			return strings.ToValidUTF8(shown[:mostShown], "") + "…"
		}
	}
	return shown
}

// psqlOption matches the name of one of psql's options.
var psqlOption = regexp.MustCompile(`^(--[a-z-]+|-[A-Za-z0-9?])`)

// shownOptions returns the names of psql's options, whose values may hold SQL or a password.
func shownOptions(arguments []string) (shown []string) {
	for _, argument := range arguments {
		if name := psqlOption.FindString(argument); name != "" {
			shown = append(shown, name)
		}
	}
	if len(shown) > 0 {
		shown = append([]string{"--"}, shown...)
	}
	return shown
}
