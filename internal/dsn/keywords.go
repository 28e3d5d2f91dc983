package dsn

import (
	"regexp"
	"strings"
)

const spaces = " \t\n\r\v\f"

// variables stand in the place of keywords and values.
var variables = regexp.MustCompile(`^(?:\$\{[A-Za-z_][A-Za-z0-9_]*\})+(?:[ \t\n\r\v\f]+|$)`)

// parseKeywords returns the settings of keywords and values, and false if a value has no keyword or a quote has no end.
func parseKeywords(text string) (settings []Setting, ok bool) {
	for rest := strings.TrimLeft(text, spaces); rest != ""; {
		if found := variables.FindString(rest); found != "" && !strings.HasPrefix(rest[len(found):], "=") {
			settings, rest = append(settings, Setting{Value: strings.TrimRight(found, spaces)}), rest[len(found):]
			continue
		}
		key, after, found := strings.Cut(rest, "=")
		key = strings.Trim(key, spaces)
		if !found || key == "" || strings.ContainsAny(key, spaces) {
			return nil, false
		}
		var value string
		if value, rest, ok = cutValue(strings.TrimLeft(after, spaces)); !ok {
			return nil, false
		}
		if key != "user" || value != "" { // pgx ignores an empty user
			settings = append(settings, Setting{canonical(key), value})
		}
	}
	return settings, true
}

// cutValue returns the value at the beginning of a text, without quotes and backslashes, and the text after it. It returns
// false if the quote has no end.
func cutValue(text string) (value, rest string, ok bool) {
	quoted := strings.HasPrefix(text, "'")
	text = strings.TrimPrefix(text, "'")
	var b strings.Builder
	i := 0
	for ; i < len(text); i++ {
		c := text[i]
		if quoted && c == '\'' {
			return b.String(), strings.TrimLeft(text[i+1:], spaces), true
		}
		if !quoted && strings.IndexByte(spaces, c) >= 0 {
			break
		}
		if c == '\\' {
			if i++; i == len(text) {
				break
			}
		}
		b.WriteByte(text[i])
	}
	return b.String(), strings.TrimLeft(text[i:], spaces), !quoted
}

// Quote returns a value as it is written after a keyword.
func Quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

func formatKeywords(settings []Setting) string {
	words := make([]string, len(settings))
	for i, s := range settings {
		words[i] = s.Key + "=" + Quote(s.Value)
		if s.Key == "" {
			words[i] = s.Value
		}
	}
	return strings.Join(words, " ")
}
