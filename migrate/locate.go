package migrate

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// explain returns the error of a shard from the server's answer to a script that it did not complete. It names the file,
// and the line and statement if they are certain.
func (s script) explain(out outcome) error {
	committed, ended := out.applied()
	p := s.parts[committed]
	if ended {
		err := ErrTransactionEnded
		if out.err != nil {
			err = fmt.Errorf("%w; then: %w", ErrTransactionEnded, out.err)
		}
		return &FileError{File: p.file.name, Err: err}
	}
	var pg *pgconn.PgError
	if !errors.As(out.err, &pg) {
		return s.lost(committed, out.err)
	}
	pg = withAdvice(withoutScript(pg))
	if left := leftShard(pg); left != nil {
		return p.file.outside(left)
	}
	if at, ok := offset(s.text, pg.Position); ok {
		switch {
		case at >= p.start && at < p.end:
			return p.file.wrong(at-p.start, p.file.statementAt(at-p.start), pg)
		case at >= p.end && out.unread(): // something in the file is left open
			return p.file.wrong(len(p.file.sql), "", pg)
		}
	}
	if out.unread() {
		return &FileError{File: p.file.name, Err: pg}
	}
	return p.count(out.lastTransaction(), pg)
}

// withoutScript returns an error about a quote or comment that is left open without the text in it, which goes on to the end
// of the script and differs from shard to shard.
func withoutScript(pg *pgconn.PgError) *pgconn.PgError {
	before, _, found := strings.Cut(pg.Message, " at or near ")
	if !found || !strings.HasPrefix(pg.Message, "unterminated ") {
		return pg
	}
	short := *pg
	short.Message = before + ": it is open to the end of the file"
	return &short
}

// advice says what to do about an error that has its cause in how a file is run, by SQLSTATE.
var advice = map[string]string{
	"25001": "mark the file \"---- tern: disable-tx ----\", to run it outside a transaction", // active_sql_transaction
	"55P04": "put ALTER TYPE … ADD VALUE into a file of its own, before this one",            // unsafe_new_enum_value_usage
}

// withAdvice returns an error with our hint in place of the server's, if there is one.
func withAdvice(pg *pgconn.PgError) *pgconn.PgError {
	hint, ok := advice[pg.Code]
	if !ok {
		return pg
	}
	advised := *pg
	advised.Hint = hint
	return &advised
}

// lost is the error of a shard whose session broke off. The server sends its answers after it has run all files, so it may
// have committed more of them than it reported.
func (s script) lost(committed int, err error) error {
	first, last := s.parts[committed].file.name, s.parts[len(s.parts)-1].file.name
	if first == last {
		return fmt.Errorf("migration %s: %w", first, err)
	}
	return fmt.Errorf("migrations %s to %s: %w", first, last, err)
}

// offset turns the position of an error, from 1, into an offset of the script in bytes.
func offset(text string, position int32) (int, bool) {
	if position < 1 {
		return 0, false
	}
	at := 0
	for range position - 1 {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size // 0 at the end
	}
	return at, true
}

// count finds the failed statement by counting the completed ones before it, for errors without a position.
func (p part) count(completed int, pg *pgconn.PgError) error {
	inFile := completed - len(p.prologue)
	switch {
	case inFile < 0:
		return fmt.Errorf("before migration %s: %w; in: %s", p.file.name, pg, shortened(p.prologue[completed]))
	case !p.file.sure:
		return &FileError{File: p.file.name, Err: pg}
	case inFile < len(p.file.statements):
		st := p.file.statements[inFile]
		return p.file.wrong(st.Start, st.in(p.file.sql), pg)
	}
	if after := inFile - len(p.file.statements); after >= len(p.epilogue)-1 {
		return &FileError{File: p.file.name, Statement: "commit", Err: pg}
	}
	return &FileError{File: p.file.name, Err: fmt.Errorf("after its last statement: %w", pg)}
}

// statementAt returns the statement at an offset, which may be at its semicolon; empty if there is none.
func (f file) statementAt(offset int) string {
	if !f.sure {
		return ""
	}
	found := ""
	for _, s := range f.statements {
		if s.Start <= offset {
			found = s.in(f.sql)
		}
	}
	return found
}
