package cli

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"
)

// The colours of what begins a line on standard error, as terminals know them.
const (
	red    = "31"
	yellow = "33"
)

// complain prints a line on standard error that begins with a word in a colour, where that is a terminal and NO_COLOR is not set, or
// CLICOLOR_FORCE is.
func (a *App) complain(word, colour, rest string) {
	text := strings.TrimPrefix(a.forTerminal(word+Clean(rest)), word)
	if a.colours(a.Stderr) {
		word = coloured(word, colour)
	}
	fmt.Fprintln(Raw(a.Stderr), word+text)
}

func coloured(text, colour string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" }

func (a *App) colours(out io.Writer) bool {
	if no, _ := a.Lookup("NO_COLOR"); no != "" {
		return false
	}
	if force, _ := a.Lookup("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	file, ok := FileOf(out)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Colours reports whether standard output may have colours.
func (a *App) Colours() bool { return a.colours(a.Stdout) }
