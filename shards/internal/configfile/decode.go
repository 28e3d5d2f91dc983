package configfile

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// decoder reads one document.
type decoder struct {
	Format
	lines   Lines
	anchors map[string]*ast.AnchorNode // by name
	budget  int
}

// Decode reads a document of at most [MaxSize] bytes into the struct that to points to. A field without a value
// counts as left out. It returns the lines of the fields, after an error those before it. The error is an [Error].
func (f Format) Decode(data []byte, to any) (Lines, error) {
	d := &decoder{Format: f, lines: Lines{}, anchors: map[string]*ast.AnchorNode{}, budget: maxValues}
	node, err := root(data)
	if err != nil || node == nil {
		return d.lines, err
	}
	d.lines[""] = lineOf(node.GetToken())
	ast.Walk(d, node)
	if node, err = d.resolve("", node); err != nil {
		return d.lines, err
	}
	return d.lines, d.decode("", node, reflect.ValueOf(to).Elem(), 1)
}

// decode reads a value. A number is least or more.
func (d *decoder) decode(at string, node ast.Node, to reflect.Value, least uint64) error {
	if s := d.scalar(to.Type()); s.read != nil {
		return d.readScalar(at, node, s, to)
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return d.decode(at, node, to.Elem(), least)
	case reflect.Struct:
		return d.readStruct(at, node, fieldsOf(to))
	case reflect.Map:
		return d.readMap(at, node, to)
	case reflect.Slice:
		return d.readList(at, node, to)
	case reflect.String:
		return d.readText(at, node, to)
	case reflect.Bool:
		n, ok := node.(*ast.BoolNode)
		if !ok {
			return failAt(at, node, kindOf(node), "true or false")
		}
		to.SetBool(n.Value)
		return nil
	}
	return readNumber(at, node, to, least)
}

// readStruct reads a mapping with some of the given fields.
func (d *decoder) readStruct(at string, node ast.Node, fields []field) error {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
		if _, ok := valuesOf(node); !ok && f.has("short") {
			return d.decode(at, node, f.value, f.least())
		}
	}
	entries, err := d.entries(at, node, "fields among "+strings.Join(names, ", "))
	if err != nil {
		return err
	}
	given := map[string]bool{}
	for _, e := range entries {
		child := join(at, e.name)
		i := slices.Index(names, e.name)
		if i < 0 {
			return failAt(at, e.key, "unknown field "+Quoted(e.name), "one of "+strings.Join(names, ", ")+d.Advise(e.name, names))
		}
		d.lines[child] = lineOf(e.key.GetToken())
		value, err := d.resolve(child, e.value)
		if err != nil {
			return err
		}
		if value.Type() == ast.NullType {
			continue
		}
		given[e.name] = true
		if err := d.decode(child, value, fields[i].value, fields[i].least()); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if f.has("required") && len(given) > 0 && !given[f.name] {
			return failAt(join(at, f.name), node, "missing", d.Expected(join(at, f.name)))
		}
	}
	return nil
}

// readMap reads a mapping of texts.
func (d *decoder) readMap(at string, node ast.Node, to reflect.Value) error {
	var fields []field
	for _, key := range d.Keys[at] {
		fields = append(fields, field{name: key, value: reflect.New(to.Type().Elem()).Elem()})
	}
	if err := d.readStruct(at, node, fields); err != nil {
		return err
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, f := range fields {
		if !f.value.IsZero() {
			to.SetMapIndex(reflect.ValueOf(f.name), f.value)
		}
	}
	return nil
}

func (d *decoder) readList(at string, node ast.Node, to reflect.Value) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return failAt(at, node, kindOf(node), d.Expected(at))
	}
	items := reflect.MakeSlice(to.Type(), len(list.Values), len(list.Values))
	for i, value := range list.Values {
		child := fmt.Sprintf("%s[%d]", at, i)
		d.lines[child] = lineOf(value.GetToken())
		value, err := d.resolve(child, value)
		if err != nil {
			return err
		}
		if err := d.decode(child, value, items.Index(i), 1); err != nil {
			return err
		}
	}
	to.Set(items)
	return nil
}

// textOf returns a text.
func textOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

// readText reads a text that is not empty.
func (d *decoder) readText(at string, node ast.Node, to reflect.Value) error {
	text, ok := textOf(node)
	if !ok {
		expected := d.Expected(at)
		switch node.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			expected += "; in quotes, since YAML takes this for " + kindOf(node)
		}
		return failAt(at, node, kindOf(node), expected)
	}
	if text == "" {
		return failAt(at, node, "empty", d.Expected(at))
	}
	to.SetString(text)
	return nil
}

// readNumber reads a whole number: of an int or a smaller type up to 31 bits, of an int64 up to 63.
func readNumber(at string, node ast.Node, to reflect.Value, least uint64) error {
	expected := fmt.Sprintf("a whole number, %d or more", least)
	if text, ok := textOf(node); ok {
		return failAt(at, node, "the text "+Quoted(text), expected)
	}
	n, ok := node.(*ast.IntegerNode)
	if !ok {
		return failAt(at, node, kindOf(node), expected)
	}
	bits := 31
	if to.Kind() == reflect.Int64 {
		bits = 63
	}
	text := n.GetToken().Value
	number, err := strconv.ParseUint(text, 10, bits)
	if err != nil || number < least {
		return failAt(at, node, text, expected)
	}
	to.SetInt(int64(number))
	return nil
}

func (d *decoder) readScalar(at string, node ast.Node, s Scalar, to reflect.Value) error {
	text, ok := textOf(node)
	_, number := node.(*ast.IntegerNode)
	if number {
		text = node.GetToken().Value
	}
	if !ok && !number {
		return failAt(at, node, kindOf(node), s.expected)
	}
	value, err := s.read(text, number)
	if err != nil {
		return &Error{Line: lineOf(node.GetToken()), Field: at, Err: err}
	}
	to.Set(value)
	return nil
}

// join returns the name of a field inside another one.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
