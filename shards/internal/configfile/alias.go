package configfile

import "github.com/goccy/go-yaml/ast"

// resolve returns the value of a node: the node itself, or the value that its alias names.
func (d *decoder) resolve(field string, node ast.Node) (ast.Node, error) {
	for {
		if err := d.spend(1, field, node); err != nil {
			return nil, err
		}
		switch n := node.(type) {
		case *ast.AnchorNode:
			node = n.Value
		case *ast.AliasNode:
			anchor := d.anchors[n.Value.GetToken().Value]
			if anchor == nil {
				return nil, failAt(field, node, "an alias", "one whose anchor is in the document, once")
			}
			node = anchor
		default:
			return node, nil
		}
	}
}

// spend limits how many values are read, each alias's again.
func (d *decoder) spend(values int, field string, node ast.Node) error {
	if d.budget -= values; d.budget < 0 {
		return failAt(field, node, "aliases that expand to too many values", likeInit)
	}
	return nil
}

// Visit records the anchors. If two have the same name it records neither, since an alias would be ambiguous.
func (d *decoder) Visit(node ast.Node) ast.Visitor {
	if anchor, ok := node.(*ast.AnchorNode); ok {
		name := anchor.Name.GetToken().Value
		if _, twice := d.anchors[name]; twice {
			anchor = nil
		}
		d.anchors[name] = anchor
	}
	return d
}

// entry is a field of a mapping and its value.
type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// entries returns the fields of a mapping as written, then those merged in by <<. A written field
// overrides a merged one of the same name.
func (d *decoder) entries(field string, node ast.Node, expected string) ([]entry, error) {
	values, ok := valuesOf(node)
	if !ok {
		return nil, failAt(field, node, kindOf(node), expected)
	}
	if err := d.spend(len(values), field, node); err != nil {
		return nil, err
	}
	var own, merged []entry
	seen := map[string]bool{}
	for _, v := range values {
		if !v.Key.IsMergeKey() {
			e := entry{v.Key.GetToken().Value, v.Key, v.Value}
			if seen[e.name] {
				return nil, failAt(field, e.key, "field "+Quoted(e.name)+" a second time", "each field once")
			}
			seen[e.name] = true
			own = append(own, e)
			continue
		}
		more, err := d.merged(field, v.Value, expected)
		if err != nil {
			return nil, err
		}
		merged = append(merged, more...)
	}
	for _, m := range merged {
		if !seen[m.name] {
			seen[m.name] = true
			own = append(own, m)
		}
	}
	return own, nil
}

// valuesOf returns the fields of a mapping as written, and false for a node of another kind.
func valuesOf(node ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// merged returns the fields that a << adds: those of a mapping, or of each mapping in a list.
func (d *decoder) merged(field string, node ast.Node, expected string) ([]entry, error) {
	node, err := d.resolve(field, node)
	if err != nil {
		return nil, err
	}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return d.entries(field, node, expected)
	}
	var all []entry
	for _, item := range list.Values {
		if item, err = d.resolve(field, item); err != nil {
			return nil, err
		}
		entries, err := d.entries(field, item, expected)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
	}
	return all, nil
}
