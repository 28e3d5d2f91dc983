package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/kiloshard/help"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
)

// topicCommands returns a command for each help topic. It has no Run, so cobra lists it as a topic.
func topicCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, topic := range help.All() {
		commands = append(commands, &cobra.Command{Use: topic.Name, Short: topic.Title, Long: topic.Text()})
	}
	return commands
}

// unknownTopic returns the error for kiloshard help NAME with a name that is neither a command nor a topic: it lists the topics.
func unknownTopic(root *cobra.Command, args []string) error {
	var text strings.Builder
	text.WriteString(cli.NeedsCommand(root, args).Error() + "\n\nHelp topics:")
	for _, topic := range help.All() {
		fmt.Fprintf(&text, "\n\t%-12s %s", topic.Name, topic.Title)
	}
	return cli.Usagef("%s", text.String())
}

// listTopics has the help of the root command list the topics as they are typed: kiloshard help NAME.
func listTopics(root *cobra.Command) {
	root.SetUsageTemplate(strings.NewReplacer(
		"Additional help topics:", "Help topics, each printed by kiloshard help TOPIC:",
		"{{rpad .CommandPath .CommandPathPadding}}", "{{rpad .Name .NamePadding}}",
	).Replace(root.UsageTemplate()))
}
