package connstring

import (
	"net/url"
	"strings"

	"github.com/kiloshard/kiloshard/internal/dsn"
)

// Fault says why the variables of a text cannot be filled in. It names the variable, never a value. Expected is empty
// if the text is empty once they are filled in: what it may be depends on its field.
type Fault struct{ Found, Expected string }

// Variables fills in the variables of texts: DSNs, and passwords. The zero value knows no text.
type Variables struct{ texts []text }

// text is a text with variables.
type text struct {
	written string
	first   *string // with the first values; package fmt prints a pointer to text as an address for every verb
	lookup  func(name string) (string, bool)
}

// Add fills in the variables of a text with the values that lookup returns, and keeps both for [Variables.Fill]. With a
// nil lookup no variable is set. A text without variables is not kept.
//
// In the user and password of a URL a value is percent-encoded, so the variable holds the password as it is. Elsewhere
// the value is inserted as it is. A $ without a { after it stays.
func (v *Variables) Add(written string, lookup func(name string) (string, bool)) *Fault {
	if written == "" {
		return nil
	}
	first, err := fill(written, lookup)
	if err == nil && first != written {
		v.texts = append(v.texts, text{written, &first, lookup})
	}
	return err
}

// Fill returns the text with the present values of its variables. If one of them is no longer set it returns the text
// with the values that [Variables.Add] found, and for a text that was not added the text itself.
func (v Variables) Fill(written string) string {
	for _, t := range v.texts {
		if t.written != written {
			continue
		}
		if now, err := fill(written, t.lookup); err == nil {
			return now
		}
		return *t.first
	}
	return written
}

func fill(written string, lookup func(name string) (string, bool)) (string, *Fault) {
	userinfoEnd := dsn.Userinfo(written)
	var b strings.Builder
	done := 0
	for _, at := range dsn.Variable.FindAllStringSubmatchIndex(written, -1) {
		name := written[at[2]:at[3]]
		value, ok := "", false
		if lookup != nil {
			value, ok = lookup(name)
		}
		if !ok {
			return "", &Fault{"variable " + name + " is not set", "a value for it in the environment"}
		}
		if at[1] <= userinfoEnd {
			value = url.User(value).String()
		}
		b.WriteString(written[done:at[0]] + value)
		done = at[1]
	}
	b.WriteString(written[done:])
	if strings.Contains(dsn.Variable.ReplaceAllString(written, ""), "${") {
		return "", &Fault{"a ${ that names no variable", "${NAME}; put a password with these two characters into a variable, or write them in a URL as %24%7B"}
	}
	if b.Len() == 0 {
		return "", &Fault{Found: "empty once its variables are filled in"}
	}
	return b.String(), nil
}
