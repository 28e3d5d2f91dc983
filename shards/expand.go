package shards

import (
	"net/url"
	"regexp"
	"strings"
)

// expansion is a DSN, or a password, with the result of filling in its variables.
type expansion struct {
	written string
	becomes *string                          // package fmt prints a pointer to text as an address for every verb
	lookup  func(name string) (string, bool) // called again at each use
}

// meantNow returns the DSN with the variables' present values, or else with those at the first expansion, or the DSN itself
// if it has no variables.
func meantNow(expanded []expansion, dsn string) string {
	for _, e := range expanded {
		if e.written != dsn {
			continue
		}
		if now, err := expand(dsn, e.lookup, expectedDSN); err == nil {
			return now
		}
		return *e.becomes
	}
	return dsn
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// expand replaces each ${NAME} in a DSN by the value that lookup returns. In the userinfo of a URL (before
// the @) the value is percent-encoded, so the variable holds the password as it is. Elsewhere the value
// is inserted as it is. A $ without a { after it stays.
// The [FieldError] names the variable, never a value, and has no field; expected describes the whole text.
func expand(dsn string, lookup func(name string) (string, bool), expected string) (string, error) {
	userinfoEnd := endOfUserinfo(dsn)
	var b strings.Builder
	done := 0
	for _, at := range variable.FindAllStringSubmatchIndex(dsn, -1) {
		name := dsn[at[2]:at[3]]
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
		b.WriteString(dsn[done:at[0]] + value)
		done = at[1]
	}
	b.WriteString(dsn[done:])
	if strings.Contains(variable.ReplaceAllString(dsn, ""), "${") {
		return "", &FieldError{Found: "a ${ that names no variable", Expected: "${NAME}; put a password with these two characters into a variable, or write them in a URL as %24%7B"}
	}
	if b.Len() == 0 {
		return "", &FieldError{Found: "empty once its variables are filled in", Expected: expected}
	}
	return b.String(), nil
}

// endOfUserinfo returns the index of the @ that ends a URL's user and password, or -1.
func endOfUserinfo(dsn string) int {
	if !isURL(dsn) {
		return -1
	}
	authority := strings.Index(dsn, "://") + len("://")
	end := strings.IndexAny(dsn[authority:], "/?#")
	if end < 0 {
		end = len(dsn) - authority
	}
	return strings.LastIndexByte(dsn[:authority+end], '@')
}

func isURL(dsn string) bool {
	return strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://")
}
