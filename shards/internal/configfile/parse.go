package configfile

import (
	"bytes"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// MaxSize is the size of the largest document, in bytes.
const MaxSize = 1 << 20

const (
	maxValues  = 200_000 // a config has fewer; aliases can expand to far more than is written
	maxNesting = 10      // brackets within brackets; the parser's time grows with their square
	maxColumn  = 200     // of a dash that begins an entry: "- - - -" nests too
	maxFields  = 100     // of a mapping without braces; the parser's time grows with their square
	maxRare    = 10      // documents, and keys that begin with a question mark, likewise
)

const likeInit = "a config as kiloshard init writes it"

// root returns the document's one value, nil for an empty document.
func root(data []byte) (ast.Node, error) {
	if len(data) > MaxSize {
		return nil, &Error{Found: "more than 1 MiB", Expected: "a config of 1 MiB at most"}
	}
	if !utf8.Valid(data) {
		return nil, &Error{Line: firstInvalidLine(data), Found: "bytes that are not UTF-8", Expected: "a YAML document in UTF-8"}
	}
	file, err := parse(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, failAt("", doc.Body, "a second document", "one YAML document")
		}
		root = doc.Body
	}
	return root, nil
}

// firstInvalidLine returns the 1-based line of the first byte that is not UTF-8.
func firstInvalidLine(data []byte) int {
	valid := 0
	for {
		r, size := utf8.DecodeRune(data[valid:])
		if r == utf8.RuneError && size <= 1 {
			return 1 + bytes.Count(data[:valid], []byte("\n"))
		}
		valid += size
	}
}

// parse parses the document, unless its shape would make the parser take forever.
func parse(data []byte) (*ast.File, error) {
	tokens := lexer.Tokenize(string(data))
	depth, fields, rare := 0, 0, 0
	for _, tk := range tokens {
		switch {
		case tk.Type == token.SequenceEntryType:
			fields = 0
		case tk.Type == token.MappingValueType && depth == 0:
			fields++
		case tk.Type == token.DocumentHeaderType || tk.Type == token.MappingKeyType:
			rare++
		}
		if fields > maxFields || rare > maxRare {
			return nil, &Error{Line: lineOf(tk), Found: "more fields or documents than a config has", Expected: likeInit}
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > maxNesting || tk.Type == token.SequenceEntryType && tk.Position.Column > maxColumn {
			return nil, &Error{Line: lineOf(tk), Found: "lists or mappings nested too deeply", Expected: likeInit}
		}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	broken := &Error{Found: "broken YAML", Expected: "a YAML document"}
	if e := yaml.Error(nil); errors.As(err, &e) {
		broken.Line = lineOf(e.GetToken())
		if message := e.GetMessage(); !strings.ContainsAny(message, "\"`@") { // a quoted part may be secret
			broken.Found += ": " + message
		}
	}
	return nil, broken
}

// lineOf returns the 1-based line of a token, 0 when it has none.
func lineOf(tk *token.Token) int {
	if tk == nil || tk.Position == nil {
		return 0
	}
	return tk.Position.Line
}
