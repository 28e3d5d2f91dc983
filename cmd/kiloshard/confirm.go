package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// yesFlag adds --yes to a command that destroys something.
func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
}

// confirm returns nil after --yes; else it asks on the terminal whether to go on. Without a terminal nobody can answer.
func (a *app) confirm(yes bool, what string) error {
	if yes {
		return nil
	}
	file, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return usagef("%s Standard input is no terminal: expected --yes", what)
	}
	fmt.Fprintf(a.stderr, "%s Type yes to go on: ", what)
	answer, err := bufio.NewReader(file).ReadString('\n')
	if strings.TrimSpace(answer) == "yes" {
		return nil
	}
	return errors.Join(errors.New("not confirmed: nothing was done"), err)
}
