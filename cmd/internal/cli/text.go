package cli

import (
	"strings"
	"time"
	"unicode"

	"github.com/kiloshard/kiloshard/internal/figures"
)

// OneLine makes a text one line without control characters.
func OneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
}

// Stamp formats a time to the second, in UTC.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// Megabytes is [figures.Megabytes].
func Megabytes(bytes int64) string { return figures.Megabytes(bytes) }

// Thousands is [figures.Thousands].
func Thousands(n int) string { return figures.Thousands(n) }

// Count returns a number and its noun: "1 shard", "2,048 shards".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// ShellQuoted returns a text in quotes for a shell.
func ShellQuoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Blank reports whether a text has nothing but space and commas: a list of unset variables is as empty as one.
func Blank(text string) bool { return strings.Trim(text, ", \t\n") == "" }
