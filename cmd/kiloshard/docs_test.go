package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/lab"
	"github.com/kiloshard/kiloshard/cmd/internal/program"
)

// newApp returns the state of a command line that prints nothing and reads no environment.
func newApp() *cli.App {
	return cli.New(strings.NewReader(""), io.Discard, io.Discard, func(string) (string, bool) { return "", false })
}

// commandLines returns the command lines of both programs in a page: in blocks of code, and between backquotes, there also those of
// groups of commands without the program's name, such as move resume.
func commandLines(text string) []string {
	var found []string
	inCode := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
			continue
		}
		if inCode {
			for part := range strings.SplitSeq(line, " && ") {
				if part = strings.TrimPrefix(part, "$ "); strings.HasPrefix(part, "kiloshard ") || strings.HasPrefix(part, "kiloshard-lab ") {
					found = append(found, part)
				}
			}
			continue
		}
		for _, span := range regexp.MustCompile("`((?:kiloshard|kiloshard-lab|move|migrate|map|id|adopt|bench) [^`]*)`").FindAllStringSubmatch(line, -1) {
			command := span[1]
			switch {
			case strings.HasPrefix(command, "bench "):
				command = "kiloshard-lab " + command
			case !strings.HasPrefix(command, "kiloshard"):
				command = "kiloshard " + command
			}
			found = append(found, command)
		}
	}
	return found
}

// TestCommandsOfPages holds that every command that the pages name is there, with the flags that they name.
func TestCommandsOfPages(t *testing.T) {
	t.Parallel()
	programs := map[string]*cobra.Command{}
	for _, root := range []*cobra.Command{program.Kiloshard(newApp()), lab.Root(newApp())} {
		root.InitDefaultHelpCmd()
		root.InitDefaultCompletionCmd("help") // cobra adds both when it executes
		programs[root.Name()] = root
	}
	for _, page := range pagesOfRepository(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(text)) {
			words := strings.Fields(strings.NewReplacer("[", " ", "]", " ", `\|`, " ").Replace(regexp.MustCompile(` [#|] .*`).ReplaceAllString(line, "")))
			root, words := programs[words[0]], words[1:]
			named := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasPrefix(w, "-") || strings.Contains(w, ".yaml") })
			if len(named) == 0 {
				continue
			}
			cmd, rest, err := root.Find(named)
			if err != nil || cmd == root || cmd.Hidden || cmd.HasSubCommands() && len(rest) > 0 && rest[0] != strings.ToUpper(rest[0]) {
				t.Errorf("%s: %q: no such command", page, line)
				continue
			}
			cmd.InheritedFlags() // merges them
			for _, word := range words {
				name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
				switch {
				case strings.HasPrefix(word, "--") && name != "" && name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil:
					t.Errorf("%s: %q: %s has no flag --%s", page, line, cmd.CommandPath(), name)
				case !strings.HasPrefix(word, "--") && strings.HasPrefix(word, "-") && len(name) == 1 && cmd.InheritedFlags().ShorthandLookup(name) == nil && cmd.Flags().ShorthandLookup(name) == nil:
					t.Errorf("%s: %q: %s has no flag -%s", page, line, cmd.CommandPath(), name)
				}
			}
		}
	}
}

// leaves returns the commands that do something, as they are typed behind the program's name.
func leaves(cmd *cobra.Command) []string {
	if !cmd.HasSubCommands() || cmd.Name() == "completion" {
		_, typed, _ := strings.Cut(cmd.CommandPath(), " ")
		return []string{typed}
	}
	var found []string
	if cmd.Name() == "move" {
		found = append(found, "move")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			found = append(found, leaves(sub)...)
		}
	}
	return found
}

// TestEveryCommand holds that the README's table of commands has each command of both programs, and that a script runs it.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `kiloshard.*$").FindAllString(string(text), -1)
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var scripts strings.Builder
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts.Write(script)
	}
	all := leaves(program.Kiloshard(newApp()))
	if len(all) < 40 {
		t.Fatalf("%d commands, expected all of them: %q", len(all), all)
	}
	check := func(typed, command string) {
		above, name, found := strings.Cut(command, " ")
		if !found {
			above, name = "", command
		}
		named := regexp.MustCompile("`(" + typed + " )?(" + above + " )?" + name + "[ `]")
		if !slices.ContainsFunc(rows, func(row string) bool {
			return strings.Contains(row, "`"+typed+" "+above) && named.MatchString(row)
		}) {
			t.Errorf("the README's table of commands leaves out %s %s", typed, command)
		}
		if !regexp.MustCompile(`(?m)^(! )?(exec|exits \d) ` + typed + `( -[a-z]( \S+)?)* ` + command + `\b`).MatchString(scripts.String()) {
			t.Errorf("no script runs %s %s", typed, command)
		}
	}
	for _, command := range all {
		check("kiloshard", command)
	}
	for _, command := range leaves(lab.Root(newApp())) {
		if !slices.Contains(all, command) { // both have completion and version
			check("kiloshard-lab", command)
		}
	}
}
