package shards

import (
	"fmt"
	"slices"
)

// ObjectType is a kind of object, such as a pin or a board, and its number in the IDs of package router/objects.
type ObjectType struct {
	Name   string `json:"name" yaml:"name"`
	Number int    `json:"number" yaml:"number,zero"` // in the type field of an ID; never changes once there are objects
}

// maxObjectTypes is how many types the IDs of package router/objects can hold, in any layout of the map.
const maxObjectTypes = 1 << 10

// Types returns the types of objects. The caller must not change the slice.
func (m *Map) Types() []ObjectType { return m.config.Types }

func checkTypes(c Config) error {
	most := maxObjectTypes
	if c.Layout.Type > 0 {
		most = min(most, c.Layout.MaxTypes())
	}
	for i, t := range c.Types {
		field := fmt.Sprintf("types[%d]", i)
		if !schemaPattern.MatchString(t.Name) || len(t.Name) > maxPrefixLen {
			return &FieldError{Field: field + ".name", Found: quoted(t.Name), Expected: expectedGeneratorName}
		}
		if t.Number < 0 || t.Number >= most {
			return &FieldError{Field: field + ".number", Found: fmt.Sprint(t.Number), Expected: fmt.Sprintf("0 to %d", most-1)}
		}
		if k := slices.IndexFunc(c.Types[:i], func(o ObjectType) bool { return o.Name == t.Name || o.Number == t.Number }); k >= 0 {
			return &FieldError{Field: field, Found: format.Flow(t) + ", beside " + format.Flow(c.Types[k]), Expected: "each name and each number once"}
		}
	}
	return nil
}

// checkTypesChange checks that no ID gets another type.
func checkTypesChange(a, b *Config) error {
	for _, t := range a.Types {
		i := slices.IndexFunc(b.Types, func(o ObjectType) bool { return o.Name == t.Name })
		if i < 0 {
			return changed("types "+t.Name, t.Number, "none", "nobody would know the table of its objects, and another type could take its number")
		}
		if n := b.Types[i].Number; n != t.Number {
			return changed("types "+t.Name, t.Number, n, "the IDs of its objects would be those of another type")
		}
	}
	return nil
}
