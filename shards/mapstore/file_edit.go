package mapstore

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// keepComments returns plain, the text of a new config, with the fields of the file's old text that do not change: their
// comments, quotes and lines stay as they are. from is the config of the old text. If the result would not be
// the new config, it returns plain. The YAML library can keep comments too, but formats everything else in its own way.
func keepComments(old, plain []byte, from shards.Config) []byte {
	before, err := from.YAML()
	if err != nil {
		return plain
	}
	edited := merge(splitFields(string(old)), splitFields(string(before)), splitFields(string(plain)))
	unset := func(name string) (string, bool) { return "${" + name + "}", true }
	c, err := shards.Parse("", []byte(edited), unset)
	if err != nil {
		return plain
	}
	if same, err := c.YAML(); err != nil || !bytes.Equal(same, plain) {
		return plain
	}
	return []byte(edited)
}

// topField is a field of the outermost level with the comments and blank lines before it.
type topField struct {
	name string // empty for the lines after the last field
	lead []string
	body []string
}

var fieldStart = regexp.MustCompile(`^([a-z_]+):`)

func splitFields(text string) []topField {
	var fields []topField
	var lead []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		start := fieldStart.FindStringSubmatch(line)
		switch {
		case start != nil:
			fields = append(fields, topField{start[1], lead, []string{line}})
			lead = nil
		case len(fields) == 0 || strings.TrimSpace(line) == "" || line[0] == '#':
			lead = append(lead, line)
		default:
			last := &fields[len(fields)-1]
			last.body = append(append(last.body, lead...), line)
			lead = nil
		}
	}
	return append(fields, topField{"", lead, nil})
}

func find(fields []topField, name string) int {
	return slices.IndexFunc(fields, func(f topField) bool { return f.name == name })
}

// merge replaces the fields of old whose canonical text, before and after, differs.
func merge(old, before, after []topField) string {
	var fields []topField
	for _, f := range old {
		was, is := find(before, f.name), find(after, f.name)
		if is < 0 {
			continue
		}
		if was < 0 || !slices.Equal(before[was].body, after[is].body) {
			f.body = after[is].body
		}
		fields = append(fields, f)
	}
	for i, f := range after { // what is new, after the field that precedes it in the canonical order
		if find(old, f.name) >= 0 || isDefault(before, f) {
			continue
		}
		at := 0
		if i > 0 {
			at = find(fields, after[i-1].name) + 1
		}
		if at == 0 {
			at = len(fields) - 1
		}
		fields = slices.Insert(fields, at, topField{name: f.name, body: f.body})
	}
	var lines []string
	for _, f := range fields {
		lines = append(append(lines, f.lead...), f.body...)
	}
	return strings.Join(lines, "\n") + "\n"
}

// isDefault reports whether a field that the file does not have was the same before.
func isDefault(before []topField, f topField) bool {
	i := find(before, f.name)
	return i >= 0 && slices.Equal(before[i].body, f.body)
}
