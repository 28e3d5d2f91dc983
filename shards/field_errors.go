package shards

import (
	"fmt"
	"strings"

	"github.com/kiloshard/kiloshard/shards/internal/configfile"
	"github.com/kiloshard/kiloshard/shards/internal/configtext"
)

// FieldError says that a field of a config, or an argument, has an invalid value.
type FieldError struct {
	File     string // where the config came from; empty when it came from no file
	Line     int    // 1-based; 0 when unknown
	Field    string // such as "placement[1].shards"
	Found    string // the value, or a description of it
	Expected string // a description of valid values
}

// Error names file, line and field if they are known, and what was found and expected.
func (e *FieldError) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:", e.Line)
		}
		b.WriteByte(' ')
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Found)
	if e.Expected != "" {
		b.WriteString("; expected " + e.Expected)
	}
	return b.String()
}

// invalid returns the error of a field whose value is not what [configtext.Expected] describes.
func invalid(field, found string) error {
	return &FieldError{Field: field, Found: found, Expected: configtext.Expected(field)}
}

// ChangeError says why a map must not replace another.
type ChangeError struct {
	Field string // of the config, such as epoch
	From  string // the present value
	To    string // the new value
	Why   string // the damage that it would do

	// MovesKeys says that the only problem is that keys would be in another shard than their rows, or in none. Such a
	// map is right once those rows have been moved, or if the keys have no rows yet.
	MovesKeys bool
}

// Error names the field, both values and the damage.
func (e *ChangeError) Error() string {
	return e.Field + ": from " + e.From + " to " + e.To + ": " + e.Why
}

// changed returns the error of a field whose values are printed as fmt.Sprint does.
func changed(field string, from, to any, why string) *ChangeError {
	return &ChangeError{Field: field, From: fmt.Sprint(from), To: fmt.Sprint(to), Why: why}
}

// quoted quotes a user's text, unless it may be a DSN in the wrong field.
func quoted(text string) string { return configfile.Quoted(text) }
