package objects

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// checkFields returns an error if a field of T has the name of the mark of deleted objects. It returns false if T is no struct, or if T
// encodes itself, so that only its documents show.
func checkFields[T any]() (checked bool, err error) {
	typ := reflect.TypeFor[T]()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler) {
		return false, nil
	}
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Tag.Get("json") == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if name == "active" {
			return false, errActive(typ.String() + "." + f.Name)
		}
	}
	return true, nil
}

// errActive says that a field has the name of the mark of deleted objects.
func errActive(field string) error {
	return &shards.FieldError{Field: field, Found: "a field named active", Expected: "another name: the store marks deleted objects with it"}
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// encode returns a document as text, because pgx sends text in every mode. It refuses strings that are not UTF-8, of which encoding/json would
// change bytes.
func encode(fields any) (string, error) {
	encoded, err := json.Marshal(fields)
	text := string(encoded)
	for rest := text; err == nil; {
		before, after, found := strings.Cut(rest, `\ufffd`)
		if !found {
			break
		}
		if escapes := len(before) - len(strings.TrimRight(before, `\`)); escapes%2 == 0 {
			err = &shards.FieldError{Field: "document", Found: "a string with bytes that are not UTF-8", Expected: "text, or bytes as []byte"}
		}
		rest = after
	}
	return text, err
}

func (t *Type[T]) decode(text []byte) (T, error) {
	var fields T
	if t.options.New != nil {
		fields = t.options.New()
	}
	err := json.Unmarshal(text, &fields)
	return fields, err
}
