package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/lab"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
)

// Every flag of every command refuses an empty value by its name: an unset variable of a script never means "all".
func TestEmptyFlags(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end() // so that a command that takes an empty value does no work
	checked := 0
	var walk func(root program.Root, cmd *cobra.Command)
	walk = func(root program.Root, cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(root, sub)
		}
		if cmd.HasSubCommands() || !cmd.Runnable() || cmd.IsAdditionalHelpTopicCommand() || cmd.Hidden {
			return
		}
		try := func(flag *pflag.Flag) {
			checked++
			var stderr bytes.Buffer
			args := append(strings.Fields(cmd.CommandPath())[1:], "--"+flag.Name+"=")
			code := program.Run(ended, cli.New(strings.NewReader(""), io.Discard, &stderr, os.LookupEnv), root, args)
			if code != 2 || !strings.Contains(stderr.String(), "--"+flag.Name) {
				t.Errorf("%q: exit %d, expected 2 and an error that names --%s: %s", args, code, flag.Name, &stderr)
			}
		}
		cmd.InheritedFlags().VisitAll(try)
		cmd.LocalFlags().VisitAll(try)
	}
	for _, root := range []program.Root{program.Kiloshard, lab.Root} {
		walk(root, root(newApp()))
	}
	if checked < 300 {
		t.Errorf("%d command lines checked, expected all flags of all commands", checked)
	}
}

// So does an element of a list, a repeated flag, an argument, and the variable that stands for -c.
func TestEmptyValues(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{
		{"migrate", "down", "--to", "3", "--to", ""},
		{"migrate", "down", "--to", "0", "--shards", ",", "--yes"},
		{"-c", "", "status"},
		{"-c", "\t", "status"},
		{"-o", "", "status"},
		{"move", "", "--to", "pg-b"},
		{"route", ""},
		{"route", "--key", ""},
		{"psql", "", "--", "-c", ""},
		{"exec", " ", "--all"},
		{"grant", ""},
		{"migrate", "new", "add", ""},
		{"map", "diff", "1", ""},
		{"id", "decode", ""},
		{"drain", ""},
	} {
		t.Run(strings.Join(line, " "), func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if code := run(context.Background(), line, strings.NewReader(""), io.Discard, &stderr); code != 2 {
				t.Errorf("exit %d, expected 2: %s", code, &stderr)
			}
			if text := stderr.String(); !strings.Contains(text, "empty") && !strings.Contains(text, "expected a value") {
				t.Errorf("expected an error that says what is empty: %s", text)
			}
		})
	}
}
