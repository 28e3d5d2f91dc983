// Package fileerror has the error of a migration file.
package fileerror

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// Error is the error of one migration file, by itself or in one shard.
type Error struct {
	File      string // its name in the directory
	Line      int    // 1-based; 0 when unknown
	Rendered  bool   // Line counts the lines of the rendered file
	Statement string // the one that failed; empty when unknown
	Kept      int    // number of statements before it that stay done, in a file marked "tern: disable-tx"; else 0
	Err       error  // a [pgconn.PgError] when the server refused it
}

// Error names file and line, the server's error with its SQLSTATE, and the statement, shortened.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("migration " + e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ", line %d", e.Line)
		if e.Rendered {
			b.WriteString(" of its rendered text")
		}
	}
	b.WriteString(": " + describe(e.Err))
	if e.Statement != "" {
		b.WriteString("; in: " + sqltext.Shortened(e.Statement))
	}
	switch {
	case e.Kept == 1:
		b.WriteString("; the statement before it stays done")
	case e.Kept > 1:
		fmt.Fprintf(&b, "; the %d statements before it stay done", e.Kept)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// describe is err.Error, with SQLSTATE, detail and hint for an error of the server.
func describe(err error) string {
	pg, ok := err.(*pgconn.PgError) //nolint:errorlint // an error that wraps one says more
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code)
	if pg.Detail != "" {
		text += "; detail: " + sqltext.Shortened(pg.Detail)
	}
	if pg.Hint != "" {
		text += "; hint: " + sqltext.Shortened(pg.Hint)
	}
	if missing(pg) && publicPattern.MatchString(pg.Message) {
		text += "; names without a schema mean the shard's own"
	}
	return text
}

// publicPattern finds a name in schema public, as messages have it in all languages.
var publicPattern = regexp.MustCompile(`(^|[ "])public\.`)

// missing reports whether a relation, a function, a type or the like does not exist.
func missing(pg *pgconn.PgError) bool {
	return pg.Code == "42P01" || pg.Code == "42883" || pg.Code == "42704"
}
