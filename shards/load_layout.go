package shards

import "github.com/goccy/go-yaml/ast"

// layout reads how the bits of an ID are split. A layout must have all its fields: an empty one means the
// default, and time: 0 must be explicit, or a forgotten line would make IDs without a time.
func (d *document) layout(to *Layout) read {
	return func(at string, node ast.Node) error {
		given := map[string]bool{}
		bits := func(name string, to *int) field {
			read := d.number(to, 0)
			return field{name, func(at string, node ast.Node) error {
				given[name] = true
				return read(at, node)
			}}
		}
		mapping := d.mapping(bits("time", &to.Time), bits("shard", &to.Shard), bits("type", &to.Type), bits("sequence", &to.Sequence))
		if err := mapping(at, node); err != nil || len(given) == 0 {
			return err
		}
		for _, f := range []struct{ name, expected string }{
			{"time", "its bits, or time: 0 for IDs without a time"},
			{"shard", "its bits"},
			{"sequence", "its bits"},
		} {
			if !given[f.name] {
				return d.fail(join(at, f.name), node, "missing", f.expected)
			}
		}
		return to.Validate()
	}
}
