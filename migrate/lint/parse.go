package lint

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

// ParseError says that a text could not be parsed as SQL.
type ParseError struct {
	Line    int    // 1-based; 0 when unknown
	Message string // the parser's
}

// Error names the line, and the parser's message.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// statement is one statement of a text, in bytes [start, end) from its first token on, without
// its semicolon.
type statement struct {
	start, end int
	node       node
	tree       any // the same, as encoding/json decodes it without knowing more
}

// parse returns the statements of a text, or a [ParseError].
func parse(sql string) ([]statement, error) {
	if zero := strings.IndexByte(sql, 0); zero >= 0 {
		return nil, &ParseError{Line: lineOf(sql, zero), Message: "there is a zero byte in it"}
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
		return nil, &ParseError{Message: "the parser's answer: " + err.Error()}
	}
	statements := make([]statement, len(result.Statements))
	for i, raw := range result.Statements {
		s := statement{start: sqltext.SkipSpace(sql, raw.Location), end: raw.Location + raw.Length}
		if raw.Length == 0 {
			s.end = len(sql)
		}
		if err := errors.Join(json.Unmarshal(raw.Stmt, &s.node), json.Unmarshal(raw.Stmt, &s.tree)); err != nil {
			return nil, &ParseError{Line: lineOf(sql, s.start), Message: "the parser's answer: " + err.Error()}
		}
		statements[i] = s
	}
	return statements, nil
}

// parseToJSON returns the parse tree. It turns a panic of the WebAssembly machine into an error.
func parseToJSON(sql string) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = gaveUp(r)
		}
	}()
	if broken.Load() {
		return "", errBroken
	}
	err = checkDepth(sql)
	if err == nil {
		text, err = parser.ParseToJSON(sql)
	}
	var refused *parser.Error
	if errors.As(err, &refused) {
		parseErr := &ParseError{Message: refused.Message}
		if refused.Cursorpos > 0 {
			parseErr.Line = lineOf(sql, characters(sql, refused.Cursorpos-1))
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

// lineOf returns the 1-based line on which an offset lies, in bytes.
func lineOf(text string, offset int) int {
	return 1 + strings.Count(text[:min(offset, len(text))], "\n")
}
