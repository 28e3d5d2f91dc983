package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takesNegative marks a command whose argument may be a negative number, which a parser of flags takes for one.
const takesNegative = "negative argument"

// TakesNegative lets a command's argument be a negative number without a -- before it.
func TakesNegative(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[takesNegative] = "yes"
}

// WithoutNegative returns the command line with the negative number behind a --, if that is what a command's flags failed
// on; nothing has run then. Else it returns nil.
func WithoutNegative(cmd *cobra.Command, err error, args []string) []string {
	var unknown *pflag.NotExistError
	if cmd == nil || cmd.Annotations[takesNegative] == "" || !errors.As(err, &unknown) {
		return nil
	}
	digits := unknown.GetSpecifiedShortnames()
	i, dash := slices.Index(args, "-"+digits), slices.Index(args, "--")
	if i < 0 || dash >= 0 && dash < i || strings.Trim(digits, "0123456789") != "" {
		return nil
	}
	rest := slices.Delete(slices.Clone(args), i, i+1)
	if dash < 0 {
		rest = append(rest, "--")
	}
	return append(rest, args[i])
}
