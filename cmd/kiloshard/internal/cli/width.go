package cli

import (
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

// width returns how many characters fit on a line of standard output.
func (a *App) width() int {
	if file, ok := FileOf(a.Stdout); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return max(width, narrowest)
		}
	}
	if text, ok := a.Lookup("COLUMNS"); ok {
		if width, err := strconv.Atoi(text); err == nil {
			return max(width, narrowest)
		}
	}
	return usualWidth
}

// Wrapped returns a text behind a lead, on as many lines as it takes, each beginning where the first one does.
func (a *App) Wrapped(lead, text string) string {
	indent, room := strings.Repeat(" ", runewidth.StringWidth(lead)), a.width()-runewidth.StringWidth(lead)
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
