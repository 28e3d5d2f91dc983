package dsn

import (
	"errors"
	"slices"
	"strings"
)

// Modes are the values of sslmode, the weakest first.
var Modes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// Setting is a key, such as sslmode, with its value.
type Setting struct{ Key, Value string }

// DSN is a connection string as its settings. The zero value has none.
type DSN struct {
	scheme   string // of a URL; empty for keywords and values
	text     string // as it was written, until a setting changes
	settings []Setting
}

// ErrSyntax is the error of [Parse]. It has no cause, for a part of a malformed DSN may be a part of its password.
var ErrSyntax = errors.New("neither a postgres:// URL nor keywords and values")

// Parse returns the settings of a DSN. It accepts every DSN that pgx can parse, and does not check values. A variable in place of keywords
// and values becomes a setting without a key.
func Parse(text string) (DSN, error) {
	d := DSN{text: text, scheme: Scheme(text)}
	var ok bool
	if strings.ContainsRune(text, 0) {
		return DSN{}, ErrSyntax
	}
	if d.scheme != "" {
		d.settings, ok = parseURL(text[len(d.scheme):])
	} else {
		d.settings, ok = parseKeywords(text)
	}
	if !ok {
		return DSN{}, ErrSyntax
	}
	return d, nil
}

// New returns keywords and values, which come in turn.
func New(pairs ...string) DSN {
	var d DSN
	for pair := range slices.Chunk(pairs, 2) {
		d.Set(pair[0], pair[1])
	}
	return d
}

// With returns a DSN with other values of some keys, which come with their values in turn. It returns a DSN that cannot be
// parsed unchanged: nothing connects with that.
func With(text string, pairs ...string) string {
	d, err := Parse(text)
	if err != nil {
		return text
	}
	for pair := range slices.Chunk(pairs, 2) {
		d.Set(pair[0], pair[1])
	}
	return d.String()
}

// Scheme returns how a URL begins, postgres:// or postgresql://, and an empty string for keywords and values.
func Scheme(text string) string {
	for _, scheme := range []string{"postgres://", "postgresql://"} {
		if strings.HasPrefix(text, scheme) {
			return scheme
		}
	}
	return ""
}

// IsURL reports whether the DSN was written as a URL.
func (d DSN) IsURL() bool { return d.scheme != "" }

// All returns all settings in the order in which they were written. Of equal keys the last one counts.
func (d DSN) All() []Setting { return slices.Clone(d.settings) }

// Lookup returns the value of a key, and whether the DSN has one.
func (d DSN) Lookup(key string) (string, bool) {
	for _, s := range slices.Backward(d.settings) {
		if s.Key == canonical(key) {
			return s.Value, true
		}
	}
	return "", false
}

// Get returns the value of a key, empty without one.
func (d DSN) Get(key string) string {
	value, _ := d.Lookup(key)
	return value
}

// Set gives a key this value alone.
func (d *DSN) Set(key, value string) {
	key = canonical(key)
	if old, ok := d.Lookup(key); ok && old == value {
		return
	}
	last := 0
	for i, s := range d.settings {
		if s.Key == key {
			last = i
		}
	}
	settings := make([]Setting, 0, len(d.settings)+1)
	for i, s := range d.settings {
		if s.Key != key {
			settings = append(settings, s)
		} else if i == last {
			settings = append(settings, Setting{key, value})
		}
	}
	if !slices.Contains(settings, Setting{key, value}) {
		settings = append(settings, Setting{key, value})
	}
	d.settings, d.text = settings, ""
}

// canonical returns the name of a key that has two.
func canonical(key string) string {
	if key == "database" {
		return "dbname"
	}
	return key
}

// String returns the DSN: as it was written if no setting was changed, else in the same form with each key once.
func (d DSN) String() string {
	if d.text != "" {
		return d.text
	}
	var settings []Setting
	for i, s := range d.settings {
		later := slices.ContainsFunc(d.settings[i+1:], func(other Setting) bool { return other.Key == s.Key })
		if s.Key == "" || !later {
			settings = append(settings, s)
		}
	}
	if d.scheme != "" {
		return d.scheme + formatURL(settings)
	}
	return formatKeywords(settings)
}
