package script

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/fileerror"
)

// ErrTransactionEnded says that a file ended its own transaction.
var ErrTransactionEnded = errors.New("the file ended its own transaction: part of it is applied, its version is not recorded")

// Explain returns the error of a shard from the server's answer to a script that it did not complete. It names the file,
// and the line and statement if they are certain.
func (s Script) Explain(out Outcome) error {
	committed, ended := out.Applied()
	p := s.parts[committed]
	if ended {
		err := ErrTransactionEnded
		if out.Err != nil {
			err = fmt.Errorf("%w; then: %w", ErrTransactionEnded, out.Err)
		}
		return &fileerror.Error{File: p.file.Name, Err: err}
	}
	var pg *pgconn.PgError
	if !errors.As(out.Err, &pg) {
		return s.lost(committed, out.Err)
	}
	pg = withAdvice(withoutScript(pg))
	if left := Left(pg); left != nil {
		return left.in(p.file)
	}
	if at, ok := Offset(s.text, pg.Position); ok {
		switch {
		case at >= p.start && at < p.end:
			return p.file.Wrong(at-p.start, p.file.StatementAt(at-p.start), pg)
		case at >= p.end && out.Unread(): // something in the file is left open
			return p.file.Wrong(len(p.file.SQL), "", pg)
		}
	}
	if out.Unread() {
		return &fileerror.Error{File: p.file.Name, Err: pg}
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
func (s Script) lost(committed int, err error) error {
	first, last := s.parts[committed].file.Name, s.parts[len(s.parts)-1].file.Name
	if first == last {
		return fmt.Errorf("migration %s: %w", first, err)
	}
	return fmt.Errorf("migrations %s to %s: %w", first, last, err)
}

// Offset turns the position of an error, from 1, into an offset of the text in bytes.
func Offset(text string, position int32) (int, bool) {
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
		return fmt.Errorf("before migration %s: %w; in: %s", p.file.Name, pg, sqltext.Shortened(p.prologue[completed]))
	case !p.file.Sure:
		return &fileerror.Error{File: p.file.Name, Err: pg}
	case inFile < len(p.file.Statements):
		st := p.file.Statements[inFile]
		return p.file.Wrong(st.Start, st.In(p.file.SQL), pg)
	}
	if after := inFile - len(p.file.Statements); after >= len(p.epilogue)-1 {
		return &fileerror.Error{File: p.file.Name, Statement: "commit", Err: pg}
	}
	return &fileerror.Error{File: p.file.Name, Err: fmt.Errorf("after its last statement: %w", pg)}
}
