package help

import (
	"path"
	"regexp"
	"strings"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// width is how many characters a line of prose has at most.
const width = 80

var (
	link = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)
	item = regexp.MustCompile(`^(- |\d+\. )`)
	term = regexp.MustCompile(`^  \S+ {2,}`)
)

// Text returns the page as a terminal shows it: paragraphs and list items wrapped at 80 columns, code indented as a block, links
// with their targets in words. A page has no tables: their rows would not fit.
func (t Topic) Text() string {
	b := page{linked: t.linked}
	code := false
	for line := range strings.Lines(t.Markdown) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			b.flush()
			code = !code
		case code && line == "":
			b.WriteString("\n")
		case code:
			b.WriteString("    " + line + "\n")
		case line == "":
			b.flush()
			b.WriteString("\n")
		case strings.HasPrefix(line, "#"):
			b.flush()
			b.WriteString(strings.ToUpper(strings.TrimLeft(line, "# ")) + "\n")
		default:
			found := item.FindString(line)
			if found != "" {
				b.flush()
				b.lead = found
			}
			b.paragraph.WriteString(line[len(found):] + "\n")
		}
	}
	b.flush()
	return strings.TrimRight(b.String(), "\n")
}

// Prose returns a text whose paragraphs, and what stands behind the words of a list, are wrapped at 80 columns. Other lines that
// begin with a space or a tab stay as they are.
func Prose(text string) string {
	b := page{linked: func(paragraph string) string { return paragraph }}
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch word := term.FindString(line); {
		case word != "":
			b.flush()
			b.lead = word
			b.paragraph.WriteString(line[len(word):])
		case strings.TrimSpace(line) != "" && indent == len(b.lead) && !strings.HasPrefix(line, "\t"):
			b.paragraph.WriteString(line)
		default:
			b.flush()
			b.WriteString(line)
		}
	}
	b.flush()
	return strings.TrimRight(b.String(), "\n")
}

// linked replaces the links of a paragraph: another topic by its command, a file by its path in the repository.
func (t Topic) linked(paragraph string) string {
	return link.ReplaceAllStringFunc(paragraph, func(found string) string {
		part := link.FindStringSubmatch(found)
		text, target := part[1], part[2]
		switch name, topic := strings.CutSuffix(target, ".md"); {
		case strings.Contains(target, "://"):
		case topic && !strings.Contains(name, "/"):
			target = "kiloshard help " + name
			if text == name {
				return target
			}
		default:
			target = path.Join("cmd/kiloshard/help", target)
		}
		if strings.Trim(text, "`") == target {
			return text
		}
		return text + " (" + target + ")"
	})
}

// page collects a text whose paragraphs are wrapped at 80 columns.
type page struct {
	strings.Builder
	linked    func(paragraph string) string
	lead      string // what the paragraph stands behind: the mark of a list item, or its word
	paragraph strings.Builder
}

// flush ends the paragraph.
func (p *page) flush() {
	if text := strings.TrimSpace(p.linked(p.paragraph.String())); p.lead+text != "" {
		p.WriteString(cli.Wrap(width, p.lead, text) + "\n")
	}
	p.paragraph.Reset()
	p.lead = ""
}
