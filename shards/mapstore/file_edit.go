package mapstore

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/kiloshard/kiloshard/shards"
)

// keepComments merges the config of plain into the text of the file, which holds the config from. It keeps what does not
// change: fields, list entries and comments that were written by hand. If it cannot, it returns plain, without comments. It
// edits lines: the YAML library can keep comments, by its comment map, but formats everything else in its own way, such as
// quotes and flow style.
func keepComments(old, plain []byte, from shards.Config) []byte {
	before, err := from.YAML()
	if err != nil {
		return plain
	}
	edited := edit(splitFields(string(old)), splitFields(string(before)), splitFields(string(plain)))
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

func find(fields []topField, name string) []string {
	if i := slices.IndexFunc(fields, func(f topField) bool { return f.name == name }); i >= 0 {
		return fields[i].body
	}
	return nil
}

// edit applies the changes between two canonical texts to one that was written by hand.
func edit(old, before, after []topField) string {
	var fields []topField
	for _, f := range old {
		was, is := find(before, f.name), find(after, f.name)
		switch {
		case f.name == "" || slices.Equal(was, is):
		case is == nil:
			continue
		default:
			f.body = editField(f.body, was, is)
		}
		fields = append(fields, f)
	}
	for i, f := range after {
		if f.name == "" || find(old, f.name) != nil || slices.Equal(find(before, f.name), f.body) {
			continue
		}
		at := 0 // after the field that precedes it in the canonical order
		if i > 0 {
			at = slices.IndexFunc(fields, func(g topField) bool { return g.name == after[i-1].name }) + 1
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

// lineComment is a comment after a value, without a quote that might make it part of the value.
var lineComment = regexp.MustCompile(`\s+#[^"']*$`)

// editField edits one field: a list entry by entry, anything else as a whole.
func editField(old, was, is []string) []string {
	if len(old) == 1 && len(is) == 1 {
		return []string{is[0] + lineComment.FindString(old[0])}
	}
	items, tail := splitItems(old[1:])
	if len(items) == 0 || len(items) != len(was)-1 || len(is) < 2 || strings.TrimSpace(lineComment.ReplaceAllString(old[0], "")) != was[0] {
		return is
	}
	body := old[:1:1]
	used := make([]bool, len(items))
	for i, line := range is[1:] {
		at := -1
		for k := range items {
			if !used[k] && was[k+1] == line {
				at = k
				break
			}
		}
		switch {
		case at >= 0:
			used[at] = true
			body = append(append(body, items[at].lead...), items[at].body...)
		case len(is) == len(was): // the entry in this place was changed
			body = append(append(body, items[i].lead...), items[i].indent()+strings.TrimSpace(line)+items[i].comment())
		default:
			body = append(body, items[0].indent()+strings.TrimSpace(line))
		}
	}
	return append(body, tail...)
}

// item is an entry of a list with the comments before it.
type item struct{ lead, body []string }

// indent returns the white space before the item.
func (t item) indent() string {
	return t.body[0][:len(t.body[0])-len(strings.TrimLeft(t.body[0], " "))]
}

// comment returns the comment after an item of one line.
func (t item) comment() string {
	if len(t.body) > 1 {
		return ""
	}
	return lineComment.FindString(t.body[0])
}

func splitItems(lines []string) (items []item, tail []string) {
	var lead []string
	for _, line := range lines {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "- "):
			items = append(items, item{lead, []string{line}})
			lead = nil
		case text == "" || text[0] == '#':
			lead = append(lead, line)
		case len(items) == 0:
			return nil, nil
		default:
			last := &items[len(items)-1]
			last.body = append(append(last.body, lead...), line)
			lead = nil
		}
	}
	return items, lead
}
