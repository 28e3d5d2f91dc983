package configfile

import (
	"reflect"
	"slices"
	"strings"
)

// Format says how values are written that are neither texts, numbers, lists nor structs with tags, and what messages say. It is
// safe for concurrent use.
type Format struct {
	Scalars  []Scalar
	Expected map[string]string   // what a field may be, by name, such as "hosts[].name"
	Keys     map[string][]string // the names that a map of texts may have, by the field's name

	// Advise returns what to do about an unknown field of a mapping with these fields, or an empty text.
	Advise func(unknown string, names []string) string
}

// Scalar says how values of a type are read and written.
type Scalar struct {
	of       reflect.Type
	expected string
	read     func(text string, number bool) (reflect.Value, error)
	write    func(reflect.Value) string
}

// ScalarOf returns how values of type T are read, from a text or the digits of a whole number, and written, as YAML. If read is nil they are
// read as other values of their kind are. Messages say what they expect.
func ScalarOf[T any](expected string, read func(text string, number bool) (T, error), write func(T) string) Scalar {
	s := Scalar{of: reflect.TypeFor[T](), expected: expected, write: func(v reflect.Value) string { return write(v.Interface().(T)) }}
	if read != nil {
		s.read = func(text string, number bool) (reflect.Value, error) {
			value, err := read(text, number)
			return reflect.ValueOf(value), err
		}
	}
	return s
}

// scalar returns how values of a type are read and written; of other types the zero Scalar.
func (f Format) scalar(t reflect.Type) Scalar {
	if i := slices.IndexFunc(f.Scalars, func(s Scalar) bool { return s.of == t }); i >= 0 {
		return f.Scalars[i]
	}
	return Scalar{}
}

// field is a field of a mapping.
type field struct {
	name    string
	options []string
	value   reflect.Value
}

func (f field) has(option string) bool { return slices.Contains(f.options, option) }

// least returns the least number that the field may have.
func (f field) least() uint64 {
	if f.has("zero") {
		return 0
	}
	return 1
}

// fieldsOf returns the fields of a struct that have a tag.
func fieldsOf(v reflect.Value) []field {
	var fields, last []field
	for i := range v.NumField() {
		tag, ok := v.Type().Field(i).Tag.Lookup("yaml")
		if !ok {
			continue
		}
		words := strings.Split(tag, ",")
		f := field{words[0], words[1:], v.Field(i)}
		if f.has("last") {
			last = append(last, f)
			continue
		}
		fields = append(fields, f)
	}
	return append(fields, last...)
}
