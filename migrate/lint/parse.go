package lint

import (
	"encoding/json"
	"errors"

	"github.com/kiloshard/kiloshard/internal/sqltree"
)

// ParseError says that a text could not be parsed as SQL.
type ParseError = sqltree.Error

// statement is one statement of a text, in bytes [start, end) from its first token on, without
// its semicolon.
type statement struct {
	start, end int
	node       node
	tree       any // the same, as encoding/json decodes it without knowing more
}

// parse returns the statements of a text, or a [ParseError].
func parse(sql string) ([]statement, error) {
	parsed, err := sqltree.Parse(sql)
	if err != nil {
		return nil, err
	}
	statements := make([]statement, len(parsed))
	for i, p := range parsed {
		s := statement{start: p.Start, end: p.End}
		if err := errors.Join(json.Unmarshal(p.Tree, &s.node), json.Unmarshal(p.Tree, &s.tree)); err != nil {
			return nil, &ParseError{Line: sqltree.LineOf(sql, s.start), Message: "the parser's answer: " + err.Error()}
		}
		statements[i] = s
	}
	return statements, nil
}
