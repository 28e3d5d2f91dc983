package program

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
)

// topicCommands returns a command for each help topic. It has no Run, so cobra lists it as a topic. A topic with the name of a command is
// the page of that: see [pageOf].
func topicCommands(root *cobra.Command) []*cobra.Command {
	var commands []*cobra.Command
	for _, topic := range help.All() {
		if slices.ContainsFunc(root.Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == topic.Name }) {
			continue
		}
		commands = append(commands, &cobra.Command{Use: topic.Name, Short: topic.Title})
	}
	return commands
}

// unknownTopic returns the error for kiloshard help NAME with a name that is neither a command nor a topic: it lists the topics.
func unknownTopic(root *cobra.Command, args []string) error {
	text := cli.NeedsCommand(root, args).Error()
	if topics := topicsOf(root); len(topics) > 0 {
		text += "\n\nHelp topics:"
		for _, topic := range topics {
			text += fmt.Sprintf("\n\t%-12s %s", topic.Name(), topic.Short)
		}
	}
	return cli.Usagef("%s", text)
}

// topicsOf returns the help topics of a program, by name.
func topicsOf(root *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(root.Commands()), func(cmd *cobra.Command) bool { return !cmd.IsAdditionalHelpTopicCommand() })
}

// withTopics completes help topics too: cobra itself offers only commands.
func withTopics(root *cobra.Command, commands cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, directive := commands(cmd, args, word)
		for _, topic := range topicsOf(root) {
			if len(args) == 0 && strings.HasPrefix(topic.Name(), word) {
				found = append(found, cobra.CompletionWithDesc(topic.Name(), topic.Short))
			}
		}
		return found, directive
	}
}

// pageOf returns what the help of a command begins with: its topic's page, or what it does.
func pageOf(cmd *cobra.Command) string {
	if cmd.IsAdditionalHelpTopicCommand() || cmd.HasParent() && !cmd.Parent().HasParent() {
		for _, topic := range help.All() {
			if topic.Name == cmd.Name() {
				return topic.Text()
			}
		}
	}
	if cmd.Long == "" {
		return cmd.Short
	}
	return help.Prose(cmd.Long)
}

// fitHelp has the help of all commands fit a terminal of 80 columns.
func fitHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := strings.TrimRightFunc(pageOf(cmd), unicode.IsSpace) + "\n\n"
		if cmd.Runnable() || cmd.HasSubCommands() {
			text += cmd.UsageString()
		}
		fmt.Fprint(cmd.OutOrStdout(), text)
	})
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 80 "))
}

// listTopics has the help of the root command list the topics as they are typed: kiloshard help NAME.
func listTopics(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		"Additional help topics:", "Help topics, each printed by kiloshard help TOPIC:",
		"{{rpad .CommandPath .CommandPathPadding}}", "{{rpad .Name .NamePadding}}",
	).Replace(root.UsageTemplate()))
}
