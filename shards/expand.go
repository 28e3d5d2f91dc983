package shards

import (
	"net/url"
	"regexp"
	"strings"
)

// expansion is a DSN, or a password, and what it became once its variables were filled in.
type expansion struct {
	written string
	becomes *string                          // package fmt prints a pointer to text as an address for every verb
	lookup  func(name string) (string, bool) // to be asked again
}

// meantNow returns what a DSN becomes with what lookup knows now, or what it became, or the DSN itself if there was
// nothing to fill in.
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

// expand replaces each ${NAME} in a DSN by what lookup knows. Where the DSN is a URL and the
// variable stands in its userinfo (before the @), the value is percent-encoded: the variable holds
// the password as it is. Elsewhere the value is put in as it is. A $ that no { follows stays.
// The [FieldError] names the variable, never a value, and has no field; expected is what the whole should be.
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
		return "", &FieldError{Found: "a ${ that names no variable", Expected: "${NAME}; a password with these two characters stands in a variable, or in a URL as %24%7B"}
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
