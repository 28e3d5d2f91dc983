package filestore

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// keepComments returns plain, the text of a new config, with the lines of old for each top-level field that does not
// change: its comments, quotes and line breaks stay. If the result would not be the new config, it returns plain. The
// YAML library can keep comments, too, but formats everything else in its own way.
func keepComments(old, plain []byte) []byte {
	before, err := canonical(old)
	if err != nil {
		return plain
	}
	edited := []byte(merge(splitFields(old), splitFields(before), splitFields(plain)))
	if same, err := canonical(edited); err != nil || !bytes.Equal(same, plain) {
		return plain
	}
	return edited
}

// canonical returns the text of a config as [shards.Config.YAML] writes it.
func canonical(text []byte) ([]byte, error) {
	asWritten := func(name string) (string, bool) { return "${" + name + "}", true }
	c, err := shards.Parse("", text, asWritten)
	if err != nil {
		return nil, err
	}
	return c.YAML()
}

// topField is a top-level field with the comments and blank lines before it.
type topField struct {
	name string // empty for the lines after the last field
	lead []string
	body []string
}

var fieldStart = regexp.MustCompile(`^([a-z_]+):`)

func splitFields(text []byte) []topField {
	var fields []topField
	var lead []string
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
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

// merge returns old with new lines for the fields whose canonical text changed from before to after.
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
	for i, f := range after { // a new field goes after the one that precedes it in the canonical order
		was := find(before, f.name)
		if find(old, f.name) >= 0 || was >= 0 && slices.Equal(before[was].body, f.body) { // or the file omits its default
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
