package main

import (
	"os"

	"golang.org/x/term"
)

// The colours of what begins a line on standard error, as terminals know them.
const (
	red    = "31"
	yellow = "33"
)

// painted returns a text in a colour, where standard error is a terminal and NO_COLOR is not set, or CLICOLOR_FORCE is.
func (a *app) painted(text, colour string) string {
	if !a.colours() {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (a *app) colours() bool {
	if no, _ := a.lookup("NO_COLOR"); no != "" {
		return false
	}
	if force, _ := a.lookup("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	file, ok := a.stderr.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
