package shards

import (
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// strategy reads how a key picks its shard.
func (d *document) strategy(to *Strategy) read {
	return d.mapping(append(d.arithmetic(to),
		field{"otherwise", func(at string, node ast.Node) error {
			to.Otherwise = &Strategy{}
			return d.mapping(d.arithmetic(to.Otherwise)...)(at, node)
		}},
		field{"allocate", d.mapping(
			field{"by", d.text(&to.Allocate.By, "weighted, least_used or capacity")},
			field{"capacity", d.count(&to.Allocate.Capacity)},
		)},
	)...)
}

// arithmetic returns the fields of a strategy other than a directory.
func (d *document) arithmetic(to *Strategy) []field {
	return []field{
		{"by", d.text(&to.By, "modulo, hash, range, directory or id")},
		{"of", d.count(&to.Of)},
		{"hash", d.text(&to.Hash, "xxhash, md5 or hex")},
		{"digits", d.count(&to.Digits)},
		{"refuse_ids", d.boolean(&to.RefuseIDs)},
		{"ranges", list(d, &to.Ranges, "a list of ranges such as {from: 0, shard: 0}", d.keyRange)},
	}
}

// keyRange reads a range. It must name its shard: a missing one does not mean shard 0.
func (d *document) keyRange(to *KeyRange) read {
	return func(at string, node ast.Node) error {
		given, shard := false, 0
		number := d.number(&shard, 0)
		mapping := d.mapping(
			field{"from", d.key(&to.From)},
			field{"to", d.key(&to.To)},
			field{"shard", func(at string, node ast.Node) error {
				given = true
				return number(at, node)
			}},
		)
		if err := mapping(at, node); err != nil {
			return err
		}
		if !given {
			return d.fail(join(at, "shard"), node, "missing", "the shard of the range")
		}
		to.Shard = Number(shard)
		return nil
	}
}

// key reads a number or a text, with or without quotes.
func (d *document) key(to *Key) read {
	return func(at string, node ast.Node) error {
		const expected = `a whole number of 64 bits, or a text in quotes`
		switch n := node.(type) {
		case *ast.IntegerNode:
			text := n.GetToken().Value
			number, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return d.fail(at, node, text, expected)
			}
			*to = NumberKey(number)
		case *ast.StringNode:
			*to = TextKey(n.Value)
		case *ast.LiteralNode:
			*to = TextKey(n.Value.Value)
		default:
			return d.fail(at, node, kindOf(node), expected)
		}
		return nil
	}
}

// boolean reads true or false.
func (d *document) boolean(to *bool) read {
	return func(at string, node ast.Node) error {
		n, ok := node.(*ast.BoolNode)
		if !ok {
			return d.fail(at, node, kindOf(node), "true or false")
		}
		*to = n.Value
		return nil
	}
}
