package program

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
)

// errEmpty is the error of a value that is given and empty, as that of a script's unset variable is.
var errEmpty = errors.New("empty value")

// refuseEmpty makes the commands below refuse empty values of flags and empty arguments. Left out, a flag such as --shards
// means all; a script that expands an unset variable must not mean that.
func refuseEmpty(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(flag *pflag.Flag) { flag.Value = nonEmptyFlag(flag.Value) })
	}
	for _, sub := range cmd.Commands() {
		refuseEmpty(sub)
	}
}

func nonEmptyFlag(value pflag.Value) pflag.Value {
	if list, ok := value.(pflag.SliceValue); ok {
		return nonEmptyList{value, list}
	}
	return nonEmpty{value}
}

// nonEmpty is a flag's value that cannot be set to the empty text.
type nonEmpty struct{ pflag.Value }

func (v nonEmpty) Set(text string) error {
	if cli.Blank(text) {
		return errEmpty
	}
	return v.Value.Set(text)
}

// nonEmptyList is a flag's list of values, none of which can be empty.
type nonEmptyList struct {
	pflag.Value
	pflag.SliceValue // as cobra completes a flag that may be repeated
}

func (v nonEmptyList) Set(text string) error {
	if slices.ContainsFunc(strings.Split(text, ","), cli.Blank) {
		return errEmpty
	}
	return v.Value.Set(text)
}

// emptyArgument reports whether one of the command's own arguments is empty. Those after -- may be another program's.
func emptyArgument(cmd *cobra.Command, args []string) bool {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		args = args[:n]
	}
	return slices.ContainsFunc(args, cli.Blank)
}
