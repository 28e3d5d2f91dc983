package shards

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// read copies the value of a field of the document into the config.
type read func(at string, node ast.Node) error

// field is a field that a mapping may have.
type field struct {
	name string
	read read
}

// mapping reads a mapping with some of the given fields. A field without a value counts as left out.
func (d *document) mapping(fields ...field) read {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	expected := "fields among " + strings.Join(names, ", ")
	return func(at string, node ast.Node) error {
		entries, err := d.entries(at, node, expected)
		if err != nil {
			return err
		}
		for _, e := range entries {
			child := join(at, e.name)
			i := slices.Index(names, e.name)
			if i < 0 {
				return d.unknown(at, e, names)
			}
			d.lines[child] = lineOf(e.key.GetToken())
			value, err := d.resolve(child, e.value)
			if err != nil {
				return err
			}
			if value.Type() == ast.NullType {
				continue
			}
			if err := fields[i].read(child, value); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d *document) unknown(at string, e entry, names []string) error {
	expected := "one of " + strings.Join(names, ", ")
	if _, err := ParseSet(e.name); err == nil && slices.Contains(names, "shards") {
		expected += `; a list of shards with a comma stands in quotes, such as "0-9,77"`
	}
	return d.fail(at, e.key, "unknown field "+quoted(e.name), expected)
}

// list reads a list into to, each item with the reader that item returns for it.
func list[T any](d *document, to *[]T, expected string, item func(*T) read) read {
	return func(at string, node ast.Node) error {
		seq, ok := node.(*ast.SequenceNode)
		if !ok {
			return d.fail(at, node, kindOf(node), expected)
		}
		items := make([]T, len(seq.Values))
		for i, value := range seq.Values {
			child := fmt.Sprintf("%s[%d]", at, i)
			d.lines[child] = lineOf(value.GetToken())
			value, err := d.resolve(child, value)
			if err != nil {
				return err
			}
			if err := item(&items[i])(child, value); err != nil {
				return err
			}
		}
		*to = items
		return nil
	}
}

// text reads text that is not empty.
func (d *document) text(to *string, expected string) read {
	return func(at string, node ast.Node) error {
		var text string
		switch n := node.(type) {
		case *ast.StringNode:
			text = n.Value
		case *ast.LiteralNode:
			text = n.Value.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			return d.fail(at, node, kindOf(node), expected+"; in quotes, since YAML takes this for "+kindOf(node))
		default:
			return d.fail(at, node, kindOf(node), expected)
		}
		if text == "" {
			return d.fail(at, node, "empty", expected)
		}
		*to = text
		return nil
	}
}

// dsn reads a DSN, and if it has variables adds to expansions the DSN with their values.
func (d *document) dsn(to *string, expansions *[]expansion) read {
	return d.secret(to, expansions, expectedDSN)
}

// secret reads a text with variables as dsn does.
func (d *document) secret(to *string, expansions *[]expansion, expected string) read {
	read := d.text(to, expected)
	return func(at string, node ast.Node) error {
		if err := read(at, node); err != nil {
			return err
		}
		expanded, err := expand(*to, d.lookup, expected)
		if err != nil {
			return d.within(at, node, err)
		}
		if expanded != *to {
			*expansions = append(*expansions, expansion{*to, &expanded, d.lookup})
		}
		return nil
	}
}

// count reads a whole number from 1 up.
func (d *document) count(to *int) read { return d.number(to, 1) }

// number reads a whole number from least up.
func (d *document) number(to *int, least uint64) read {
	return func(at string, node ast.Node) error {
		expected := fmt.Sprintf("a whole number, %d or more", least)
		switch n := node.(type) {
		case *ast.IntegerNode:
			text := n.GetToken().Value
			count, err := strconv.ParseUint(text, 10, 31)
			if err != nil || count < least {
				return d.fail(at, node, text, expected)
			}
			*to = int(count)
			return nil
		case *ast.StringNode:
			return d.fail(at, node, "the text "+quoted(n.Value), expected)
		}
		return d.fail(at, node, kindOf(node), expected)
	}
}

// large reads a whole number of up to 63 bits, 1 or more.
func (d *document) large(to *int64) read {
	return func(at string, node ast.Node) error {
		const expected = "a whole number, 1 or more"
		n, ok := node.(*ast.IntegerNode)
		if !ok {
			return d.fail(at, node, kindOf(node), expected)
		}
		text := n.GetToken().Value
		number, err := strconv.ParseInt(text, 10, 64)
		if err != nil || number < 1 {
			return d.fail(at, node, text, expected)
		}
		*to = number
		return nil
	}
}

// set reads a set of shards, or the number of one.
func (d *document) set(to *Set) read {
	return func(at string, node ast.Node) error {
		var text string
		switch n := node.(type) {
		case *ast.StringNode:
			text = n.Value
		case *ast.IntegerNode:
			text = n.GetToken().Value
		default:
			return d.fail(at, node, kindOf(node), `shards such as 7, 0-1023 or "0-9,77"`)
		}
		set, err := ParseSet(text)
		if err != nil {
			return d.within(at, node, err)
		}
		*to = set
		return nil
	}
}

// moment reads a time, or a day, which means midnight UTC of that day.
func (d *document) moment(to *time.Time) read {
	return func(at string, node ast.Node) error {
		const expected = "a time such as 2026-01-01T00:00:00Z, or a day such as 2026-01-01"
		n, ok := node.(*ast.StringNode)
		if !ok {
			return d.fail(at, node, kindOf(node), expected)
		}
		for _, format := range []string{time.RFC3339Nano, time.DateOnly} {
			if t, err := time.Parse(format, n.Value); err == nil {
				*to = t.UTC()
				return nil
			}
		}
		if strings.Trim(n.Value, "0123456789-:.+TZ ") == "" {
			return d.fail(at, node, strconv.Quote(n.Value), expected)
		}
		return d.fail(at, node, quoted(n.Value), expected)
	}
}

// within adds the field and the line to an error that has none.
func (d *document) within(at string, node ast.Node, err error) error {
	if e := (*FieldError)(nil); errors.As(err, &e) {
		e.Field, e.Line = at, lineOf(node.GetToken())
	}
	return err
}

// join returns the name of a field inside another one.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}
