package migrate

import (
	"errors"
	"regexp"
	"strings"
)

var (
	errNoDown      = errors.New("it has no way down: expected SQL behind the line \"" + upDownSeparator + "\"")
	errTransaction = errors.New("a file is run in a transaction of its own: take this statement out of it")
	errOutside     = errors.New("a file marked \"tern: disable-tx\" is run statement by statement, each by itself: take this statement out of it")
	errUnsure      = errors.New("it is marked \"tern: disable-tx\", and cannot be taken apart into statements: expected every quote, comment and parenthesis to be closed")
	errEscapes     = errors.New("it is marked \"tern: disable-tx\", and cannot be taken apart into statements: expected a server with standard_conforming_strings on")
	errStdin       = errors.New("COPY FROM STDIN has no data to read here: write INSERT statements")
	errZeroByte    = errors.New("there is a zero byte in it, which no SQL text may have")
)

// disableTxPattern is tern's mark of a file whose way up or down, wherever in it a line of its own says so, is to
// run outside a transaction; also where the file's lines end in \r\n. In the way up it is meant for the way down too: what
// was built outside a transaction is mostly dropped so. tern itself wants it in each.
var disableTxPattern = regexp.MustCompile(`(?m)^---- tern: disable-tx ----\r?$`)

// check returns a [FileError] for a file that cannot be run in a transaction beside others, nor, if it is
// marked, statement by statement. What it does not see in a text that [split] is not sure of, the server still finds; see [applied].
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
		}
	}
	return nil
}

// wrong returns a [FileError] for what stands at an offset of the file's SQL, in bytes.
func (f file) wrong(offset int, statement string, err error) *FileError {
	return &FileError{File: f.name, Line: f.line(offset), Rendered: f.rendered, Statement: statement, Err: err}
}

// line returns the 1-based line of the file where an offset of its SQL lies.
func (f file) line(offset int) int { return f.firstLine + strings.Count(f.sql[:offset], "\n") }
