package cli

import (
	"fmt"

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
	if a.colours() {
		word = "\x1b[" + colour + "m" + word + "\x1b[0m"
	}
	fmt.Fprintln(Raw(a.Stderr), word+Clean(rest))
}

func (a *App) colours() bool {
	if no, _ := a.Lookup("NO_COLOR"); no != "" {
		return false
	}
	if force, _ := a.Lookup("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	file, ok := FileOf(a.Stderr)
	return ok && term.IsTerminal(int(file.Fd()))
}
