package configfile

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Field is a field of a document: its name and its lines.
type Field struct{ Name, Text string }

// Fields returns the fields of a struct as a document has them. A list of structs has a line for each.
func (f Format) Fields(v any) []Field {
	var fields []Field
	for _, field := range fieldsOf(reflect.ValueOf(v)) {
		if field.omitted() {
			continue
		}
		text := field.name + ":"
		if list := field.value; list.Kind() == reflect.Slice && list.Type().Elem().Kind() == reflect.Struct {
			for i := range list.Len() {
				text += "\n  - " + f.flow(list.Index(i), false)
			}
		} else if value := f.flow(list, field.has("quoted")); strings.HasPrefix(value, "\n") {
			text += value
		} else {
			text += " " + value
		}
		fields = append(fields, Field{field.name, text})
	}
	return fields
}

// Write writes fields as a document, each after an empty line and its comment if it has one.
func Write(fields []Field, comments map[string]string) []byte {
	var b bytes.Buffer
	for _, f := range fields {
		if text, ok := comments[f.Name]; ok {
			b.WriteString("\n" + Comment(text))
		}
		b.WriteString(f.Text + "\n")
	}
	return b.Bytes()
}

// Comment returns a text as the lines of a comment.
func Comment(text string) string {
	return strings.ReplaceAll("# "+strings.ReplaceAll(text, "\n", "\n# ")+"\n", "# \n", "#\n")
}

// Flow returns a value on one line.
func (f Format) Flow(v any) string { return f.flow(reflect.ValueOf(v), false) }

func (f Format) flow(v reflect.Value, quoted bool) string {
	if s := f.scalar(v.Type()); s.write != nil {
		return s.write(v)
	}
	var parts []string
	switch v.Kind() {
	case reflect.Pointer:
		return f.flow(v.Elem(), quoted)
	case reflect.Struct:
		for _, field := range fieldsOf(v) {
			if !field.omitted() {
				parts = append(parts, field.name+": "+f.flow(field.value, field.has("quoted")))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Map:
		values := v.Interface().(map[string]string)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			parts = append(parts, key+": "+strconv.Quote(values[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, f.flow(v.Index(i), quoted))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.String:
		if quoted {
			return strconv.Quote(v.String())
		}
		return Plain(v.String())
	}
	return fmt.Sprint(v.Interface())
}

func (f field) omitted() bool {
	empty := f.value.IsZero() || f.value.Kind() == reflect.Slice && f.value.Len() == 0
	return f.has("omitempty") && empty
}

// plainPattern matches text that YAML reads as text, even between brackets, except the words in notPlain.
var (
	plainPattern = regexp.MustCompile(`^(\.{0,2}/)?[A-Za-z_][A-Za-z0-9_./-]*$`)
	notPlain     = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
)

// Plain returns a text as YAML, without quotes if it needs none.
func Plain(text string) string {
	if plainPattern.MatchString(text) && !slices.Contains(notPlain, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
