// Package help holds the help topics: the Markdown pages beside this file, which kiloshard help prints and README.md links.
package help

import (
	"embed"
	"strings"
)

//go:embed *.md
var files embed.FS

// Topic is one page of help.
type Topic struct {
	Name     string // what is typed behind kiloshard help: the file's name without .md
	Title    string // the page's first heading, one line
	Markdown string // the whole page
}

// All returns the topics in the order of their names.
func All() []Topic {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("bug: " + err.Error())
	}
	all := make([]Topic, len(entries))
	for i, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			panic("bug: " + err.Error())
		}
		title, _, _ := strings.Cut(string(text), "\n")
		all[i] = Topic{
			Name:     strings.TrimSuffix(entry.Name(), ".md"),
			Title:    strings.TrimPrefix(title, "# "),
			Markdown: string(text),
		}
	}
	return all
}
