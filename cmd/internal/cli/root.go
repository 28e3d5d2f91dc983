package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// NeedsCommand is the RunE of commands that only hold others: it names the closest of them.
func NeedsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("%s: expected a command, see %s --help", cmd.CommandPath(), cmd.CommandPath())
	}
	cmd.SuggestionsMinimumDistance = 2 // as cobra has it for the root
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		text += "\n\nDid you mean this?\n\t" + strings.Join(similar, "\n\t")
	}
	return Usagef("%s", text)
}

// NewRoot returns the command above all others of a program, with the flags that say what to print.
func (a *App) NewRoot(name, version string) *cobra.Command {
	root := &cobra.Command{
		Use:           name,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return err // cobra itself would look only after this function
			}
			if !slices.Contains(outputs, a.Output) {
				return fmt.Errorf("-o %q: expected table, json or plain", a.Output)
			}
			a.started, a.running, a.arguments = true, cmd, args
			return nil
		},
	}
	root.PersistentFlags().StringVarP(&a.Output, "output", "o", Table, "what to print: table, json, or plain, which has no heads and tabs between columns")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp)) // fails only for a flag that is not there
	root.PersistentFlags().BoolVarP(&a.Quiet, "quiet", "q", false, "print no progress, summaries or warnings")
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	return root
}

// FindsConfig has the commands below a root find the config before they run, and adds the flags that say which one, and how long its
// store may take.
func (a *App) FindsConfig(root *cobra.Command) {
	start := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := a.storeTimeout(cmd); err != nil {
			return err
		}
		if !cmd.Flags().Changed("config") {
			if file, ok := a.Lookup(configVariable); ok && Blank(file) {
				return fmt.Errorf("%s %q: expected a config file: unset it for %s here or in a directory above", configVariable, file, DefaultConfig)
			}
			a.ConfigFile = a.findConfig(cmd)
		}
		return start(cmd, args)
	}
	root.PersistentFlags().StringVarP(&a.ConfigFile, "config", "c", DefaultConfig, "the config file (default $KILOSHARD_CONFIG, or "+DefaultConfig+" here or in a directory above)")
	root.PersistentFlags().Lookup("config").DefValue = "" // so that the help does not tell it twice
	root.PersistentFlags().DurationVar(&a.storeLimit, "store-timeout", 2*time.Second, "how long the map's store may take to answer (default $"+StoreVariable+", or 2s)")
	root.PersistentFlags().Lookup("store-timeout").DefValue = "0" // so that the help does not tell it twice
}
