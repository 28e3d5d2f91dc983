package files

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

var (
	errNoDown      = errors.New("it has no way down: expected SQL after the line \"" + upDownSeparator + "\"")
	errTransaction = errors.New("a file is run in a transaction of its own: take this statement out of it")
	errOutside     = errors.New("a file marked \"tern: disable-tx\" is run statement by statement, each by itself: take this statement out of it")
	errUnsure      = errors.New("it is marked \"tern: disable-tx\", and cannot be split into statements: expected every quote, comment and parenthesis to be closed")
	errSharedWork  = errors.New("this concerns the whole server or database, and not a shard: run it once on each host, with psql")
	errPath        = errors.New("the search_path of a file marked \"tern: disable-tx\" is the shard's: take this statement out of it")
	errStdin       = errors.New("COPY FROM STDIN has no data to read here: write INSERT statements")
	errZeroByte    = errors.New("there is a zero byte in it, which no SQL text may have")
)

// ErrEscapes says that the server would read a file's strings in another way than it was split.
var ErrEscapes = errors.New("it is marked \"tern: disable-tx\", and cannot be split into statements: expected a server with standard_conforming_strings on")

// disableTxPattern is tern's mark for a part of a file that runs outside a transaction. It is a line of its own anywhere in
// the part; lines may end in \r\n. In the up part it holds for the down part too, since an object that was built outside
// a transaction is usually dropped outside one. tern itself wants the mark in each part.
var disableTxPattern = regexp.MustCompile(`(?m)^---- tern: disable-tx ----\r?$`)

// Check returns a [fileerror.Error] for a file that can run neither in a transaction of its own nor, if it is marked, statement
// by statement. In a text that [split] is not sure of it may miss statements; script.Outcome.Applied detects those afterwards.
func (f File) Check() error {
	switch {
	case f.Direction == Force:
		return nil
	case f.Unwritten:
		return &fileerror.Error{File: f.Name, Err: errNoUp}
	case f.SQL == "":
		return &fileerror.Error{File: f.Name, Err: errNoDown}
	case strings.ContainsRune(f.SQL, 0):
		return f.Wrong(strings.IndexByte(f.SQL, 0), "", errZeroByte)
	case f.DisableTx && !f.Sure:
		return &fileerror.Error{File: f.Name, Err: errUnsure}
	}
	for _, s := range f.Statements {
		switch {
		case s.controlsTransaction() && f.DisableTx:
			return f.Wrong(s.Start, s.In(f.SQL), errOutside)
		case s.controlsTransaction():
			return f.Wrong(s.Start, s.In(f.SQL), errTransaction)
		case s.readsStdin(f.SQL):
			return f.Wrong(s.Start, s.In(f.SQL), errStdin)
		case s.concernsServer():
			return f.Wrong(s.Start, s.In(f.SQL), errSharedWork)
		case f.DisableTx && s.SetsSession() && slices.Contains(s.Words, "search_path"):
			return f.Wrong(s.Start, s.In(f.SQL), errPath)
		}
	}
	if at := f.psqlCommand(); at >= 0 {
		command, _, _ := strings.Cut(f.SQL[at:], "\n")
		return f.Wrong(at, "", fmt.Errorf("%s is a command of psql, and not SQL: take it out of the file", sqltext.Shortened(command)))
	}
	return nil
}

// Wrong returns a [fileerror.Error] for a statement at an offset of the file's SQL, in bytes.
func (f File) Wrong(offset int, statement string, err error) *fileerror.Error {
	return &fileerror.Error{File: f.Name, Line: f.line(offset), Rendered: f.Rendered, Statement: statement, Err: err}
}

// line returns the 1-based line of the file where an offset of its SQL lies.
func (f File) line(offset int) int { return f.FirstLine + strings.Count(f.SQL[:offset], "\n") }

// StatementAt returns the statement at an offset, which may be at its semicolon; empty if there is none.
func (f File) StatementAt(offset int) string {
	if !f.Sure {
		return ""
	}
	found := ""
	for _, s := range f.Statements {
		if s.Start <= offset {
			found = s.In(f.SQL)
		}
	}
	return found
}
