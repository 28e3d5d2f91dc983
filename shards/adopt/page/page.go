// Package page is the form of the reports of adopt: sections with a table each, for a terminal or as an HTML file that needs nothing
// else.
package page

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
)

// Page is one report.
type Page struct {
	Title    string
	Facts    []string
	Sections []Section
}

// Section is a part of a report: a table with a head and a note.
type Section struct {
	ID      string // short, of letters and hyphens
	Head    string
	Note    string
	Columns []string // heads in capitals; one that begins with ">" aligns its column to the right, with "~" it may be cut on a terminal
	Rows    [][]string
}

// Add adds a section, unless it has no rows.
func (p *Page) Add(s Section) {
	if len(s.Rows) > 0 {
		p.Sections = append(p.Sections, s)
	}
}

//go:embed page.html
var source string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"right": func(columns []string, i int) bool { return strings.HasPrefix(columns[i], ">") },
	"head": func(column string) string {
		column = strings.TrimLeft(column, ">~")
		return column[:min(1, len(column))] + strings.ToLower(column[min(1, len(column)):])
	},
}).Parse(source))

// WriteHTML writes the page as one HTML file. It escapes all data. If w fails, the error is w's, and a part may be written.
func (p Page) WriteHTML(w io.Writer) error {
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return err
	}
	_, err := out.WriteTo(w)
	return err
}
