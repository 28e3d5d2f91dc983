package sqltree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	// Not its root package, which imports pg_query_go, C code, if there is a C compiler.
	"github.com/wasilibs/go-pgquery/parser"

	"github.com/kiloshard/kiloshard/internal/sqltext"
)

// Error says that a text could not be parsed as SQL.
type Error struct {
	Line    int    // 1-based; 0 when unknown
	Message string // the parser's
}

// Error names the line, and the parser's message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Statement is one statement of a text, in bytes [Start, End) from its first token on, without
// its semicolon.
type Statement struct {
	Start, End int
	Tree       json.RawMessage // of the statement
}

// Parse returns the statements of a text. The error is an [Error]. It is safe for concurrent use.
func Parse(sql string) ([]Statement, error) {
	if zero := strings.IndexByte(sql, 0); zero >= 0 {
		return nil, &Error{Line: LineOf(sql, zero), Message: "there is a zero byte in it"}
	}
	text, err := parseToJSON(sql)
	if err != nil {
		return nil, err
	}
	var result struct {
		Statements []struct {
			Stmt     json.RawMessage `json:"stmt"`
			Location int             `json:"stmt_location"`
			Length   int             `json:"stmt_len"` // 0 for what goes on to the end of the text
		} `json:"stmts"`
	}
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		return nil, &Error{Message: "the parser's answer: " + err.Error()}
	}
	statements := make([]Statement, len(result.Statements))
	for i, raw := range result.Statements {
		s := Statement{Start: sqltext.SkipSpace(sql, raw.Location), End: raw.Location + raw.Length, Tree: raw.Stmt}
		if raw.Length == 0 {
			s.End = len(sql)
		}
		statements[i] = s
	}
	return statements, nil
}

// parseToJSON returns the parse tree.
func parseToJSON(sql string) (string, error) {
	return guarded(sql, func(sql string) (string, error) {
		if err := checkDepth(sql); err != nil {
			return "", err
		}
		return parser.ParseToJSON(sql)
	})
}

// Normalize returns a text with $1, $2, … in place of its constants, as pg_stat_statements does. The error is an [Error].
func Normalize(sql string) (string, error) {
	if strings.IndexByte(sql, 0) >= 0 {
		return "", &Error{Message: "there is a zero byte in it"}
	}
	return guarded(sql, parser.Normalize)
}

// guarded calls a function of the parser. It turns a panic of the WebAssembly machine into an error.
func guarded(sql string, call func(string) (string, error)) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = gaveUp(r)
		}
	}()
	if broken.Load() {
		return "", errBroken
	}
	text, err = call(sql)
	var refused *parser.Error
	if errors.As(err, &refused) {
		parseErr := &Error{Message: refused.Message}
		if refused.Cursorpos > 0 {
			parseErr.Line = LineOf(sql, characters(sql, refused.Cursorpos-1))
		}
		return "", parseErr
	}
	return text, err
}

// characters returns the length of the first n characters, in bytes.
func characters(text string, n int) int {
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size // 0 at the end
	}
	return at
}

// LineOf returns the 1-based line on which an offset lies, in bytes.
func LineOf(text string, offset int) int {
	return 1 + strings.Count(text[:min(offset, len(text))], "\n")
}
