package objects

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// fieldsOf returns the names of the fields of T in a document. It returns nil if T is no struct, or if T encodes itself.
func fieldsOf[T any]() ([]string, error) {
	typ := reflect.TypeFor[T]()
	if typ.Kind() != reflect.Struct || typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler) {
		return nil, nil
	}
	names := []string{}
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Tag.Get("json") == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if name == "active" {
			return nil, &shards.FieldError{Field: typ.String() + "." + f.Name, Found: "a field named active", Expected: "another name: the store marks deleted objects with it"}
		}
		names = append(names, name)
	}
	return names, nil
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// encode returns a document as text, because pgx sends text in every mode.
func encode(fields any) (string, error) {
	text, err := json.Marshal(fields)
	return string(text), err
}

func (t *Type[T]) decode(text []byte) (T, error) {
	var fields T
	if t.options.New != nil {
		fields = t.options.New()
	}
	err := json.Unmarshal(text, &fields)
	return fields, err
}
