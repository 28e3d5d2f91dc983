package configfile

import (
	"reflect"
	"slices"
	"strings"
)

// Format says how to write values that are neither texts, numbers, lists nor structs with tags, and what messages say.
// It is safe for concurrent use.
type Format struct {
	Scalars []Scalar
	Keys    map[string][]string // the names that a map of texts may have, by the field's name

	// Expected describes the values that a field may have, such as those of "hosts[0].name".
	Expected func(field string) string

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

// ScalarOf returns the form of values of type T. Function read gets a text or the digits of a whole number, write
// returns YAML, and messages say what is expected. If read is nil the values are read as other values of their kind.
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
