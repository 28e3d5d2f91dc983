package help

import (
	"path"
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
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
	var b, paragraph strings.Builder
	lead := "" // of a list item
	flush := func() {
		b.WriteString(lead)
		b.WriteString(wrap(t.linked(paragraph.String()), strings.Repeat(" ", len(lead))))
		paragraph.Reset()
		lead = ""
	}
	code := false
	for line := range strings.Lines(t.Markdown) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			flush()
			code = !code
		case code && line == "":
			b.WriteString("\n")
		case code:
			b.WriteString("    " + line + "\n")
		case line == "":
			flush()
			b.WriteString("\n")
		case strings.HasPrefix(line, "#"):
			flush()
			b.WriteString(strings.ToUpper(strings.TrimLeft(line, "# ")) + "\n")
		default:
			found := item.FindString(line)
			if found != "" {
				flush()
				lead = found
			}
			paragraph.WriteString(line[len(found):] + "\n")
		}
	}
	flush()
	return strings.TrimRight(b.String(), "\n")
}

// Prose returns a text whose paragraphs, and what stands behind the words of a list, are wrapped at 80 columns. Other lines that
// begin with a space or a tab stay as they are.
func Prose(text string) string {
	var b, paragraph strings.Builder
	lead := ""
	flush := func() {
		b.WriteString(lead)
		b.WriteString(wrap(paragraph.String(), strings.Repeat(" ", len(lead))))
		paragraph.Reset()
		lead = ""
	}
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		switch word := term.FindString(line); {
		case word != "":
			flush()
			lead = word
			paragraph.WriteString(line[len(word):])
		case strings.TrimSpace(line) != "" && indent == len(lead) && !strings.HasPrefix(line, "\t"):
			paragraph.WriteString(line)
		default:
			flush()
			b.WriteString(line)
		}
	}
	flush()
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

// wrap returns a paragraph in lines of at most 80 characters; all but the first are indented, and the first has as much before it.
func wrap(paragraph, indent string) string {
	var b strings.Builder
	used := 0
	for _, word := range strings.Fields(paragraph) {
		switch n := runewidth.StringWidth(word); {
		case used == 0:
			used = len(indent) + n
		case used+1+n > width:
			b.WriteString("\n" + indent)
			used = len(indent) + n
		default:
			b.WriteByte(' ')
			used += 1 + n
		}
		b.WriteString(word)
	}
	if used > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}
