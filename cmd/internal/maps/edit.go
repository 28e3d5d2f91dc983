package maps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func editCommand(a *cli.App) *cobra.Command {
	var (
		flags changeFlags
		file  string
	)
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Changes the map: in an editor, or from a file",
		Long: `Opens the map in $VISUAL or $EDITOR, or reads the text of --file, checks it, prints what changes, and stores it
as the next version, unless another change came first. A text that is refused stays in its file.

Changes that would break a living cluster are refused. A shard changes its host by kiloshard move, not by an
edit. --moved says that shards were moved by other means; they are looked for on their new hosts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				now, err := s.Load(ctx)
				if err != nil {
					return err
				}
				if file != "" {
					return editFrom(ctx, a, s, now, file, flags)
				}
				if err := s.isFrom(now, flags); err != nil {
					return err
				}
				return editIn(ctx, a, s, now, flags)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "the file with the map to be, - for standard input (default an editor)")
	return cmd
}

// editFrom stores the map in a file as the next version.
func editFrom(ctx context.Context, a *cli.App, s *session, now mapstore.Entry, file string, f changeFlags) error {
	text, err := readInput(a, file)
	if err != nil {
		return err
	}
	written, err := shards.Parse(file, text, a.Unset)
	if err != nil {
		return err
	}
	if err := s.base(now, written, f); err != nil {
		return err
	}
	return change(ctx, a, s, now, written, f)
}

// editIn has a person edit the map, and makes that the next version.
func editIn(ctx context.Context, a *cli.App, s *session, now mapstore.Entry, f changeFlags) error {
	text, err := s.text(now.Map)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "kiloshard-map-*.yaml") // which only its owner can read
	if err != nil {
		return err
	}
	path := file.Name()
	_, err = fmt.Fprintf(file, "# The map of %s, %s.\n# Once saved and left, it is checked, and is the next version. Left as it is, nothing is changed.\n%s", now.Map.Config().Cluster, cli.VersionOf(now), text)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := editor(ctx, a, path); err != nil {
		return fmt.Errorf("%w; the text is in %s", err, path)
	}
	edited, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := shards.Parse(path, edited, a.Unset)
	if err == nil {
		err = s.base(now, written, f) // an older text may have been put in its place
	}
	if err == nil {
		f.edited = true
		err = change(ctx, a, s, now, written, f)
	}
	if err != nil {
		return fmt.Errorf("%w\nkiloshard: the edited text is in %s; kiloshard map edit --file %s takes it from there", err, path, path)
	}
	return os.Remove(path)
}

// editor runs the user's editor on a file.
func editor(ctx context.Context, a *cli.App, path string) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if value, ok := a.Lookup(name); ok && value != "" {
			editor = value
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path) // an editor may be given with flags
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.Stdin, cli.Raw(a.Stderr), cli.Raw(a.Stderr)
	if a.Output != cli.JSON {
		cmd.Stdout = cli.Raw(a.Stdout)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", editor, err)
	}
	return nil
}

// readInput reads a file, or standard input for "-".
func readInput(a *cli.App, path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.Stdin, maxInput))
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, cli.Usagef("no file %s: expected one with a map in it", path)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// maxInput is more than the history of any map.
const maxInput = 1 << 30
