// Package cli is the core that all commands share: common flags, the config and the map, output, errors and exit codes.
// It knows no command.
package cli

import (
	"io"
	"time"

	"github.com/spf13/cobra"
)

// App is the state that all commands share.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer // cleaned

	Lookup func(name string) (string, bool) // of environment variables that the config names

	ConfigFile string
	found      bool   // a search found ConfigFile; neither -c nor the environment names it
	Output     string // Table, JSON or Plain
	storeLimit time.Duration
	Quiet      bool // nothing is printed but what was asked for, and errors
	unhindered *unhindered
	started    bool // the command line was understood, and a command began
	running    *cobra.Command
	arguments  []string // of the running command, without its flags

	TemplateEnv bool // of migrate: see its flag
}

// New returns the state before a command line is read. Output is cleaned of control characters.
func New(stdin io.Reader, stdout, stderr io.Writer, lookup func(name string) (string, bool)) *App {
	return &App{Stdin: stdin, Stdout: cleaned{stdout, newReader()}, Stderr: cleaned{stderr, newReader()}, Lookup: lookup}
}

// Unhindered returns standard error for work that must not wait for its reader. Call [App.Flush] after the work.
func (a *App) Unhindered() io.Writer {
	if a.unhindered == nil {
		a.unhindered = newUnhindered(a.Stderr)
	}
	return a.unhindered
}

// Flush returns when all is written that [App.Unhindered] was given, or after two seconds.
func (a *App) Flush() {
	if a.unhindered != nil {
		a.unhindered.flush()
	}
}
