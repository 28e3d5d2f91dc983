package shards

import (
	"fmt"
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

// expand records the DSNs and the password that have variables, with the values that lookup returns. The error is a [FieldError]
// about a field.
func (c *Config) expand(lookup func(name string) (string, bool)) error {
	fill := func(all *[]expansion, field, text, expected string) error {
		if text == "" {
			return nil
		}
		filled, err := expand(text, lookup, expected)
		if err != nil {
			err.Field = field
			return err
		}
		if filled != text {
			*all = append(*all, expansion{text, &filled, lookup})
		}
		return nil
	}
	s := &c.Store
	if err := fill(&s.expanded, "store.dsn", s.DSN, expectedStoreDSN); err != nil {
		return err
	}
	if err := fill(&s.expanded, "store.password", s.Password, expectedPassword); err != nil {
		return err
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		at := fmt.Sprintf("hosts[%d].", i)
		if err := fill(&h.expanded, at+"dsn", h.DSN, expectedDSN); err != nil {
			return err
		}
		for k, dsn := range h.Replicas {
			if err := fill(&h.expanded, fmt.Sprintf("%sreplicas[%d]", at, k), dsn, expectedDSN); err != nil {
				return err
			}
		}
	}
	return nil
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
func expand(text string, lookup func(name string) (string, bool), expected string) (string, *FieldError) {
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
