package shards

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

const (
	maxValues  = 200_000 // a config has fewer; aliases can expand to far more than is written
	maxNesting = 10      // brackets within brackets; the parser's time grows with their square
	maxColumn  = 200     // of a dash that begins an entry: "- - - -" nests too
	maxFields  = 100     // of a mapping without braces; the parser's time grows with their square
	maxRare    = 10      // documents, and keys that begin with a question mark, likewise
)

// document is a config file while it is read.
//
// The library parses, but we read its nodes ourselves instead of using its strict decoder. The decoder accepts 123 and true
// as texts, "7" and 1e3 as numbers, null as an empty host, and ignores a second document; its errors name Go's types
// instead of fields, and quote the line, which may hold a password.
type document struct {
	file    string
	lookup  func(name string) (string, bool)
	lines   map[string]int             // by field, such as "hosts[0].name"; "" is the whole
	anchors map[string]*ast.AnchorNode // by name
	budget  int                        // how many more values may be read, each alias's again
}

// fail returns the error for the value of a field.
func (d *document) fail(field string, node ast.Node, found, expected string) error {
	return &FieldError{Line: lineOf(node.GetToken()), Field: field, Found: found, Expected: expected}
}

// root returns the document's one value, nil for an empty document.
func (d *document) root(data []byte) (ast.Node, error) {
	if len(data) > maxSize {
		return nil, &FieldError{Found: "more than 1 MiB", Expected: "a config of 1 MiB at most"}
	}
	if !utf8.Valid(data) {
		return nil, &FieldError{Line: firstInvalidLine(data), Found: "bytes that are not UTF-8", Expected: "a YAML document in UTF-8"}
	}
	file, err := parseYAML(bytes.TrimPrefix(data, []byte("\ufeff")))
	if err != nil {
		return nil, err
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, d.fail("", doc.Body, "a second document", "one YAML document")
		}
		root = doc.Body
	}
	if root == nil {
		return nil, nil
	}
	d.lines[""] = lineOf(root.GetToken())
	ast.Walk(d, root)
	return d.resolve("", root)
}

// firstInvalidLine returns the 1-based line of the first byte that is not UTF-8.
func firstInvalidLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line
}

// parseYAML parses the document, unless its shape would make the parser take forever.
func parseYAML(data []byte) (*ast.File, error) {
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
			return nil, &FieldError{Line: lineOf(tk), Found: "more fields or documents than a config has", Expected: "a config as kiloshard init writes it"}
		}
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > maxNesting || tk.Type == token.SequenceEntryType && tk.Position.Column > maxColumn {
			return nil, &FieldError{Line: lineOf(tk), Found: "lists or mappings nested too deeply", Expected: "a config as kiloshard init writes it"}
		}
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	broken := &FieldError{Found: "broken YAML", Expected: "a YAML document"}
	if e := yaml.Error(nil); errors.As(err, &e) {
		broken.Line = lineOf(e.GetToken())
		if message := e.GetMessage(); !strings.ContainsAny(message, "\"`@") { // what is quoted may be secret
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

// kindOf says what a value is, without showing it.
func kindOf(node ast.Node) string {
	switch node.Type() {
	case ast.NullType:
		return "nothing"
	case ast.StringType, ast.LiteralType:
		return "text"
	case ast.IntegerType, ast.FloatType, ast.InfinityType, ast.NanType:
		return "a number"
	case ast.BoolType:
		return "true or false"
	case ast.SequenceType:
		return "a list"
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.TagType:
		return "a YAML tag"
	}
	return "something else"
}
