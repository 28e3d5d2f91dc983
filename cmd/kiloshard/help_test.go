package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/lab"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
)

// TestHelpFits holds that the help of each command of ours fits a terminal of 80 columns. Code, and how a command is called, is on one line.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	var all func(cmd *cobra.Command)
	all = func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		isTopic := slices.ContainsFunc(help.All(), func(topic help.Topic) bool { return topic.Name == cmd.Name() })
		for line := range strings.Lines(out.String()) {
			code := strings.HasPrefix(line, "    ") && isTopic || strings.HasPrefix(line, "  kiloshard")
			if width := runewidth.StringWidth(strings.TrimRight(line, "\n")); width > 80 && !code {
				t.Errorf("%s --help: %d columns: %s", cmd.CommandPath(), width, line)
			}
		}
		for _, child := range cmd.Commands() {
			if child.Name() != "completion" { // cobra's
				all(child)
			}
		}
	}
	all(program.Kiloshard(&cli.App{}))
	all(lab.Root(&cli.App{}))
}
