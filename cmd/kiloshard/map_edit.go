package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func (a *app) mapEditCommand() *cobra.Command {
	var (
		flags changeFlags
		file  string
	)
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Changes the map: in an editor, or from a file",
		Long: `Opens the map in $VISUAL or $EDITOR, or takes the text of --file instead, checks it, prints what changes, and makes it
the next version, if nobody else has made one meanwhile. A text that is not taken stays in its file.

What would break a living cluster is refused. Shards get another home by being moved, not by an edit:
that needs --moved, and then they are looked for on their hosts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onMap(cmd, func(ctx context.Context, s *mapSession) error {
				now, err := s.Load(ctx)
				if err != nil {
					return err
				}
				if file != "" {
					return a.editFrom(ctx, s, now, file, flags)
				}
				if flags.from >= 0 && flags.from != now.Map.Version() {
					return s.conflict(now, flags.from)
				}
				return a.editIn(ctx, s, now, flags)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&file, "file", "", "the file with the map to be, - for standard input (default an editor)")
	return cmd
}

// editFrom makes what a file holds the next version.
func (a *app) editFrom(ctx context.Context, s *mapSession, now mapstore.Entry, file string, f changeFlags) error {
	text, err := a.readInput(file)
	if err != nil {
		return err
	}
	written, err := shards.Parse(file, text, a.unset())
	if err != nil {
		return err
	}
	if err := s.base(now, written, f); err != nil {
		return err
	}
	return a.change(ctx, s, now, written, f)
}

// editIn has a person edit the map, and makes that the next version.
func (a *app) editIn(ctx context.Context, s *mapSession, now mapstore.Entry, f changeFlags) error {
	text, err := s.text(now.Map)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "kiloshard-map-*.yaml") // which only its owner can read
	if err != nil {
		return err
	}
	path := file.Name()
	_, err = fmt.Fprintf(file, "# The map of %s, %s.\n# Once saved and left, it is checked, and is the next version. Left as it is, nothing is changed.\n%s", now.Map.Config().Cluster, versionOf(now), text)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := a.editor(ctx, path); err != nil {
		return fmt.Errorf("%w; the text is in %s", err, path)
	}
	edited, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := shards.Parse(path, edited, a.unset())
	if err == nil {
		err = s.base(now, written, f) // an older text may have been put in its place
	}
	if err == nil {
		f.edited = true
		err = a.change(ctx, s, now, written, f)
	}
	if err != nil {
		return fmt.Errorf("%w\nkiloshard: the edited text is in %s; kiloshard map edit --file %s takes it from there", err, path, path)
	}
	return os.Remove(path)
}

// editor runs the user's editor on a file.
func (a *app) editor(ctx context.Context, path string) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if value, ok := a.lookup(name); ok && value != "" {
			editor = value
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", path) // an editor may be given with flags
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, raw(a.stderr), raw(a.stderr)
	if a.output != outputJSON {
		cmd.Stdout = raw(a.stdout)
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", editor, err)
	}
	return nil
}

// readInput reads a file, or standard input for "-".
func (a *app) readInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.stdin, maxInput))
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("no file %s: expected one with a map in it", path)
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
}

// maxInput is more than the history of any map.
const maxInput = 1 << 30
