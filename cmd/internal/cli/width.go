package cli

import (
	"io"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// narrowest is the smallest width that lines are wrapped to, and usualWidth the width when none is known.
const (
	narrowest  = 40
	usualWidth = 100
)

// Width returns how many characters fit on a line of standard output.
func (a *App) Width() int {
	if width, ok := a.knownWidth(); ok {
		return width
	}
	return usualWidth
}

// knownWidth returns the width of the terminal, or what COLUMNS says.
func (a *App) knownWidth() (int, bool) {
	if width, ok := terminalWidth(a.Stdout); ok {
		return width, true
	}
	if text, ok := a.Lookup("COLUMNS"); ok {
		if width, err := strconv.Atoi(text); err == nil {
			return max(width, narrowest), true
		}
	}
	return 0, false
}

// terminalWidth returns the width of a terminal, and false for what is none.
func terminalWidth(out io.Writer) (int, bool) {
	file, ok := FileOf(out)
	if !ok {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	return max(width, narrowest), err == nil && width > 0
}

// leastCell is the width below which no column is cut.
const leastCell = 6

// fit cuts cells of the columns that may be cut, the widest first, until the table is as wide as the terminal. Where no width is known,
// such as for a file, nothing is cut.
func (a *App) fit(rows [][]string, widths []int, marks []byte) {
	room, ok := a.knownWidth()
	if !ok {
		return
	}
	for i, width := range widths {
		room -= width
		if i > 0 {
			room -= 2
		}
	}
	for room < 0 {
		widest := -1
		for i := range widths {
			if marks[i] == '~' && widths[i] > leastCell && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
		room++
	}
	for _, row := range rows {
		for i := range row {
			if marks[i] == '~' {
				row[i] = runewidth.Truncate(row[i], widths[i], "…")
			}
		}
	}
}

// Wrap returns a text behind a lead, on as many lines of a width as it takes, each beginning where the first one does.
func Wrap(width int, lead, text string) string {
	indent, room := strings.Repeat(" ", runewidth.StringWidth(lead)), width-runewidth.StringWidth(lead)
	var b strings.Builder
	b.WriteString(lead)
	used := 0
	for _, word := range strings.Fields(text) {
		for { // a word that is longer than a line is broken
			width := runewidth.StringWidth(word)
			if used > 0 && used+1+width > room {
				b.WriteString("\n" + indent)
				used = 0
			}
			if used > 0 {
				b.WriteByte(' ')
				used++
			}
			if width <= room {
				b.WriteString(word)
				used += width
				break
			}
			head := runewidth.Truncate(word, room, "")
			b.WriteString(head)
			word, used = word[len(head):], room
		}
	}
	return b.String()
}

// broken returns a text whose sentences are broken between words where they are wider than a line.
func broken(width int, text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if runewidth.StringWidth(line) > width && isSentence(line) {
			lines[i] = Wrap(width, "", line)
		}
	}
	return strings.Join(lines, "\n")
}

// forTerminal returns a text as standard error shows it: broken, if that is a terminal.
func (a *App) forTerminal(text string) string {
	if width, ok := terminalWidth(a.Stderr); ok {
		return broken(width, text)
	}
	return text
}

// isSentence reports whether the spaces of a line mean nothing.
func isSentence(line string) bool {
	return !strings.Contains(line, "\t") && !strings.Contains(line, "  ")
}
