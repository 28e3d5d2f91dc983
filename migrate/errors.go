package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

var (
	// ErrNothingRun is among the causes if a run ended before any file ran on any host.
	ErrNothingRun = errors.New("nothing was run")

	// ErrNotCreated says that a shard's schema does not exist on its host.
	ErrNotCreated = errors.New("the schema does not exist: run kiloshard create")

	// ErrAhead says that a shard's version is above the newest file's.
	ErrAhead = errors.New("its version is above the newest file's")

	// ErrTernAtWork says that a tern program, or another session with tern's lock, did not release the lock in time.
	ErrTernAtWork = errors.New("a tern program is at work in this database")

	// ErrTransactionEnded says that a file ended its own transaction. What it did up to there is committed, but the shard's
	// version does not include it.
	ErrTransactionEnded = errors.New("the file ended its own transaction: part of it is applied, its version is not recorded")

	// ErrNotFlushed says that a shard was migrated, but its server did not confirm that this is on disk. After a crash of
	// the server the shard may be at an earlier version.
	ErrNotFlushed = errors.New("migrated, but the server did not confirm that it is on disk")
)

// FileError is the error of one migration file, by itself or in one shard.
type FileError struct {
	File      string // its name in the directory
	Line      int    // 1-based; 0 when unknown
	Rendered  bool   // Line counts the lines of the rendered file
	Statement string // the one that failed; empty when unknown
	Kept      int    // number of statements before it that stay done, in a file marked "tern: disable-tx"; else 0
	Err       error  // a [pgconn.PgError] when the server refused it
}

// Error names file and line, the server's error with its SQLSTATE, and the statement, shortened.
func (e *FileError) Error() string {
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
		b.WriteString("; in: " + shortened(e.Statement))
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
func (e *FileError) Unwrap() error { return e.Err }

// describe is err.Error, with SQLSTATE, detail and hint for an error of the server.
func describe(err error) string {
	pg, ok := err.(*pgconn.PgError) //nolint:errorlint // an error that wraps one says more
	if !ok {
		return err.Error()
	}
	text := fmt.Sprintf("%s (SQLSTATE %s)", pg.Message, pg.Code)
	if pg.Detail != "" {
		text += "; detail: " + shortened(pg.Detail)
	}
	if pg.Hint != "" {
		text += "; hint: " + shortened(pg.Hint)
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

// shortened returns a text on one line, cut off if it is long.
func shortened(text string) string {
	const most = 160 // characters
	short := []rune(strings.Join(strings.Fields(text), " "))
	if len(short) > most {
		return string(short[:most-1]) + "…"
	}
	return string(short)
}

// refusal is the error of a run that ended before any file ran.
func refusal(set shards.Set, failed []*shards.ShardError, causes ...error) *shards.PartialError {
	return &shards.PartialError{
		Failed:       sortShards(failed),
		NotAttempted: without(set, numbersOf(failed)),
		Causes:       append([]error{ErrNothingRun}, causes...),
	}
}

func sortShards(failed []*shards.ShardError) []*shards.ShardError {
	slices.SortFunc(failed, func(a, b *shards.ShardError) int { return int(a.Shard) - int(b.Shard) })
	return failed
}

func numbersOf(failed []*shards.ShardError) shards.Set {
	numbers := make([]shards.Number, len(failed))
	for i, f := range failed {
		numbers[i] = f.Shard
	}
	return shards.SetOf(numbers...)
}

// without returns the shards of set that are not in other.
func without(set, other shards.Set) shards.Set {
	var left []shards.Number
	for n := range set.All() {
		if !other.Has(n) {
			left = append(left, n)
		}
	}
	return shards.SetOf(left...)
}
