package migrate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	errNoDown      = errors.New("it has no way down: expected SQL after the line \"" + upDownSeparator + "\"")
	errTransaction = errors.New("a file is run in a transaction of its own: take this statement out of it")
	errOutside     = errors.New("a file marked \"tern: disable-tx\" is run statement by statement, each by itself: take this statement out of it")
	errUnsure      = errors.New("it is marked \"tern: disable-tx\", and cannot be split into statements: expected every quote, comment and parenthesis to be closed")
	errEscapes     = errors.New("it is marked \"tern: disable-tx\", and cannot be split into statements: expected a server with standard_conforming_strings on")
	errSharedWork  = errors.New("this concerns the whole server or database, and not a shard: run it once on each host, with psql")
	errPath        = errors.New("the search_path of a file marked \"tern: disable-tx\" is the shard's: take this statement out of it")
	errStdin       = errors.New("COPY FROM STDIN has no data to read here: write INSERT statements")
	errZeroByte    = errors.New("there is a zero byte in it, which no SQL text may have")
)

// disableTxPattern is tern's mark for a part of a file that runs outside a transaction. It is a line of its own anywhere in
// the part; lines may end in \r\n. In the up part it holds for the down part too, since an object that was built outside
// a transaction is usually dropped outside one. tern itself wants the mark in each part.
var disableTxPattern = regexp.MustCompile(`(?m)^---- tern: disable-tx ----\r?$`)

// check returns a [FileError] for a file that can run neither in a transaction of its own nor, if it is marked, statement
// by statement. In a text that [split] is not sure of it may miss statements; [outcome.applied] detects those afterwards.
func (f file) check() error {
	switch {
	case f.direction == force:
		return nil
	case f.unwritten:
		return &FileError{File: f.name, Err: errNoUp}
	case f.sql == "":
		return &FileError{File: f.name, Err: errNoDown}
	case strings.ContainsRune(f.sql, 0):
		return f.wrong(strings.IndexByte(f.sql, 0), "", errZeroByte)
	case f.disableTx && !f.sure:
		return &FileError{File: f.name, Err: errUnsure}
	}
	for _, s := range f.statements {
		switch {
		case s.controlsTransaction() && f.disableTx:
			return f.wrong(s.Start, s.in(f.sql), errOutside)
		case s.controlsTransaction():
			return f.wrong(s.Start, s.in(f.sql), errTransaction)
		case s.readsStdin(f.sql):
			return f.wrong(s.Start, s.in(f.sql), errStdin)
		case s.concernsServer():
			return f.wrong(s.Start, s.in(f.sql), errSharedWork)
		case f.disableTx && s.setsSession() && slices.Contains(s.Words, "search_path"):
			return f.wrong(s.Start, s.in(f.sql), errPath)
		}
	}
	if at := f.psqlCommand(); at >= 0 {
		command, _, _ := strings.Cut(f.sql[at:], "\n")
		return f.wrong(at, "", fmt.Errorf("%s is a command of psql, and not SQL: take it out of the file", shortened(command)))
	}
	return nil
}

// wrong returns a [FileError] for a statement at an offset of the file's SQL, in bytes.
func (f file) wrong(offset int, statement string, err error) *FileError {
	return &FileError{File: f.name, Line: f.line(offset), Rendered: f.rendered, Statement: statement, Err: err}
}

// line returns the 1-based line of the file where an offset of its SQL lies.
func (f file) line(offset int) int { return f.firstLine + strings.Count(f.sql[:offset], "\n") }
