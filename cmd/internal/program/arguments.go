package program

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nameArguments has the commands below say which arguments they expect. Cobra only counts them, and takes one too many for a
// command.
func nameArguments(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		nameArguments(sub)
	}
	check := cmd.Args
	if check == nil {
		return
	}
	counts := !cmd.HasSubCommands() // others look for a command that is meant
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if emptyArgument(cmd, args) {
			return fmt.Errorf("%q: an empty argument: expected %s", args, cmd.UseLine())
		}
		err := check(cmd, args)
		if err == nil || !counts {
			return err
		}
		if len(args) == 0 {
			return fmt.Errorf("no argument: expected %s", cmd.UseLine())
		}
		return fmt.Errorf("%q: expected %s", args, cmd.UseLine())
	}
}

// namedFlag says what a flag expects, where cobra quotes Go's functions.
func namedFlag(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	if errors.Is(err, errEmpty) {
		return fmt.Errorf("--%s %q: expected a value: leave the flag out for its default", invalid.GetFlag().Name, invalid.GetValue())
	}
	expected := map[string]string{
		"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "float64": "a number",
		"duration": "a duration such as 10s", "bool": "true or false",
	}[invalid.GetFlag().Value.Type()]
	if expected == "" {
		return err
	}
	return fmt.Errorf("--%s %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected)
}
