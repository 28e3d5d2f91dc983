package shards

import (
	"net/url"
	"strings"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// expansion is a DSN, or a password, with the result of filling in its variables.
type expansion struct {
	written string
	becomes *string                          // package fmt prints a pointer to text as an address for every verb
	lookup  func(name string) (string, bool) // called again at each use
}

// meantNow returns the DSN with the variables' present values, or else with those at the first expansion, or the DSN itself
// if it has no variables.
func meantNow(expanded []expansion, text string) string {
	for _, e := range expanded {
		if e.written != text {
			continue
		}
		if now, err := expand(text, e.lookup, expectedDSN); err == nil {
			return now
		}
		return *e.becomes
	}
	return text
}

// expand replaces each ${NAME} in a DSN by the value that lookup returns. In the userinfo of a URL (before
// the @) the value is percent-encoded, so the variable holds the password as it is. Elsewhere the value
// is inserted as it is. A $ without a { after it stays.
// The [FieldError] names the variable, never a value, and has no field; expected describes the whole text.
func expand(text string, lookup func(name string) (string, bool), expected string) (string, error) {
	userinfoEnd := dsn.Userinfo(text)
	var b strings.Builder
	done := 0
	for _, at := range dsn.Variable.FindAllStringSubmatchIndex(text, -1) {
		name := text[at[2]:at[3]]
		value, ok := "", false
		if lookup != nil {
			value, ok = lookup(name)
		}
		if !ok {
			return "", &FieldError{Found: "variable " + name + " is not set", Expected: "a value for it in the environment"}
		}
		if at[1] <= userinfoEnd {
			value = url.User(value).String()
		}
		b.WriteString(text[done:at[0]] + value)
		done = at[1]
	}
	b.WriteString(text[done:])
	if strings.Contains(dsn.Variable.ReplaceAllString(text, ""), "${") {
		return "", &FieldError{Found: "a ${ that names no variable", Expected: "${NAME}; put a password with these two characters into a variable, or write them in a URL as %24%7B"}
	}
	if b.Len() == 0 {
		return "", &FieldError{Found: "empty once its variables are filled in", Expected: expected}
	}
	return b.String(), nil
}
