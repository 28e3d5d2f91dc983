package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// YesFlag adds --yes to a command that destroys something.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// Confirm returns nil after --yes; else it asks on the terminal whether to go on. Without a terminal it fails.
func (a *App) Confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	file, ok := a.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Usagef("%s Standard input is no terminal: expected --yes", what)
	}
	fmt.Fprintf(a.Stderr, "%s Type yes to go on: ", what)
	answer, err := bufio.NewReader(file).ReadString('\n')
	if strings.TrimSpace(answer) == "yes" {
		return nil
	}
	return errors.Join(errors.New("not confirmed: nothing was done"), err)
}
