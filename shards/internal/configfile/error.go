package configfile

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Error says that a document is not YAML, or that a field has a value of the wrong kind. It never shows a DSN.
type Error struct {
	Line     int    // 1-based; 0 if it is unknown
	Field    string // such as "hosts[0].name"; empty for the whole document
	Found    string
	Expected string
	Err      error // of the function that read the value, in place of Found and Expected
}

// Error returns what was found and expected.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Field + ": " + e.Err.Error()
	}
	return e.Field + ": " + e.Found + "; expected " + e.Expected
}

// Unwrap returns the error of the function that read the value, or nil.
func (e *Error) Unwrap() error { return e.Err }

func failAt(field string, node ast.Node, found, expected string) error {
	return &Error{Line: lineOf(node.GetToken()), Field: field, Found: found, Expected: expected}
}

// Lines are the 1-based lines of a document's fields, by name, such as "hosts[0].name"; "" is the whole document.
type Lines map[string]int

// Of returns the line of a field, or else of the nearest field around it that the document has, or else 1.
func (l Lines) Of(field string) int {
	for {
		if line := l[field]; line > 0 || field == "" {
			return max(line, 1)
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// Quoted quotes a user's text, unless it may be a DSN in the wrong field.
func Quoted(text string) string {
	switch {
	case text == "":
		return "missing"
	case strings.ContainsAny(text, "@=:"):
		return "something that looks like a DSN"
	}
	return strconv.Quote(text)
}

// kindOf describes a value without showing it.
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
