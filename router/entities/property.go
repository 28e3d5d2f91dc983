package entities

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a property's values.
type Kind string

// The types of values, in Go and in Postgres.
const (
	Text  Kind = "text"  // string, text in the order of its bytes
	Int   Kind = "int"   // int64, bigint; a string of decimal digits counts, as shards.ID is one in JSON
	Float Kind = "float" // float64, double precision
	Bool  Kind = "bool"  // bool, boolean
	Time  Kind = "time"  // time.Time, timestamptz: a string in the form of RFC 3339, as time.Time is one in JSON; microseconds
)

var columnTypes = map[Kind]string{Text: "text", Int: "bigint", Float: "double precision", Bool: "boolean", Time: "timestamptz"}

// document is a body of which only the top level is parsed.
type document map[string]json.RawMessage

// parse parses a body.
func parse(body []byte) (document, error) {
	var d document
	err := json.Unmarshal(body, &d)
	if err == nil && d == nil {
		err = errors.New("null")
	}
	if err != nil {
		return nil, fmt.Errorf("expected a JSON object as the body: %w", err)
	}
	return d, nil
}

// at returns the value of a path, and nil if there is none.
func (d document) at(path string) json.RawMessage {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return d[name]
	}
	var inner document
	if raw := d[name]; len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &inner) != nil {
		return nil
	}
	return inner.at(rest)
}

// properties are the indexed properties of a document, by their paths.
type properties map[string]json.RawMessage

// of returns the indexed properties of a body.
func (s *Store) of(body []byte) (properties, error) {
	d, err := parse(body)
	if err != nil {
		return nil, err
	}
	p := properties{}
	for _, path := range s.paths {
		p[path] = d.at(path)
	}
	return p, nil
}

// projected parses the result of the SQL of [project]. It returns nil for nil.
func projected(text []byte) (p properties, err error) {
	if text != nil {
		err = json.Unmarshal(text, &p)
	}
	return p, err
}

// project returns a SQL expression: some properties of a body, by their paths, as an object in JSON.
func project(paths []string, body string) string {
	all := make([]string, len(paths))
	for k, path := range paths {
		all[k] = "'" + path + "', " + body + " #> '{" + strings.ReplaceAll(path, ".", ",") + "}'"
	}
	return "jsonb_build_object(" + strings.Join(all, ", ") + ")"
}

// value returns the value of a property; nil if it is missing or of another type.
func value(raw json.RawMessage, kind Kind) any {
	if len(raw) == 0 {
		return nil
	}
	switch first := raw[0]; {
	case first == '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return nil
		}
		return ofText(text, kind)
	case kind == Bool && (first == 't' || first == 'f'):
		return first == 't'
	case (kind == Int || kind == Float) && (first == '-' || first >= '0' && first <= '9'):
		return number(string(raw), kind)
	}
	return nil
}

func ofText(text string, kind Kind) any {
	switch kind {
	case Text:
		return text
	case Int: // a shards.ID is a string in JSON
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
			return n
		}
	case Time:
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return inMicroseconds(at)
		}
	}
	return nil
}

// inMicroseconds returns a time as Postgres stores it. Two results for the same time are equal in the sense of ==.
func inMicroseconds(at time.Time) time.Time { return time.UnixMicro(at.UnixMicro()).UTC() }

// number parses a number as Postgres does, which writes 1e2 as 100.
func number(text string, kind Kind) any {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil
	}
	if kind == Float {
		return f + 0 // no -0
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if exact, ok := new(big.Rat).SetString(text); math.Abs(f) < 1<<63 && (f == 0 || math.Abs(f) > 1e-300) && ok && exact.IsInt() && exact.Num().IsInt64() {
		return exact.Num().Int64()
	}
	return nil
}

// scalar converts a value to the type that [value] returns. It returns nil for nil.
func scalar(v any) (any, bool) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return nil, true
	case reflect.String:
		return r.String(), true
	case reflect.Bool:
		return r.Bool(), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), true
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return int64(r.Uint()), r.Uint() <= math.MaxInt64
	}
	return nil, false
}

func kindOf(v any) Kind {
	switch v.(type) {
	case string:
		return Text
	case bool:
		return Bool
	case int64:
		return Int
	case float64:
		return Float
	}
	return ""
}
