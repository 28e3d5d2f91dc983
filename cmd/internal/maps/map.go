// Package maps is kiloshard map: the map and its versions, in whichever store.
package maps

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// Command is kiloshard map.
func Command(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "map",
		Short: "Shows and changes the map and its versions, in any store",
		Long: `The map says which shards exist and where each one lives. It is kept in the store that the config names: in
kiloshard.yaml itself, in a Postgres database, or in etcd. Each change makes a version, and the store keeps all
of them, with who made each, when and why. Changes that would break a living cluster are refused, and so are
changes of an old version.`,
		RunE: cli.NeedsCommand,
	}
	cmd.AddCommand(showCommand(a), diffCommand(a), historyCommand(a), editCommand(a), rollbackCommand(a), exportCommand(a), importCommand(a))
	return cmd
}

// session is the store of a map, open while a command runs.
type session struct {
	mapstore.Store
	local shards.Config // what the config file holds of its own
	where string        // the map is kept, for people
	opts  mapstore.Options
}

// onMap opens the store for one command. No host is connected to, so the variables of their DSNs need not be set.
func onMap(a *cli.App, cmd *cobra.Command, run func(ctx context.Context, s *session) error) error {
	cfg, err := a.LoadFile(a.Unset)
	if !errors.Is(err, fs.ErrNotExist) || cmd.Name() != "import" { // into a new file
		cfg, err = a.LocalOffline()
		if err != nil {
			return err
		}
	}
	opts := mapstore.Options{KeepUnset: true}
	store, err := a.OpenStore(cmd.Context(), cfg, opts)
	if err != nil {
		return err
	}
	opts.Lookup = a.Lookup
	s := &session{Store: store, local: cfg, where: a.Where(cfg.Store), opts: opts}
	return errors.Join(a.NoMap(cfg, run(cmd.Context(), s)), store.Close())
}

// text writes a map as people edit it: without what is said of the store, and in a store other than a file without
// the directory of the migrations.
func (s *session) text(m *shards.Map) ([]byte, error) {
	c := m.Config()
	if s.local.Remote() {
		c.Migrations = ""
	}
	return c.YAML()
}

// toBe returns the config of a change: what is written, with what is local of the map that it replaces. Of a document that
// comes from elsewhere only what is shared is taken: its password_command would be run here. Who has edited the file itself, in
// an editor, has edited all of it.
func (s *session) toBe(written shards.Config, edited bool) shards.Config {
	if s.local.Remote() || !edited {
		return written.WithLocal(s.local)
	}
	if written.Migrations == "" {
		written.Migrations = s.local.Migrations
	}
	return written
}

// versions returns the versions that numbers name, each once asked for: all of them if none is named. The newest is first.
func (s *session) versions(ctx context.Context, numbers ...int) ([]mapstore.Entry, error) {
	var found []mapstore.Entry
	left := map[int]bool{}
	for _, n := range numbers {
		left[n] = true
	}
	for entry, err := range s.History(ctx) {
		if err != nil {
			return nil, err
		}
		if n := entry.Map.Version(); len(numbers) == 0 || left[n] {
			found = append(found, entry)
			delete(left, n)
		}
		if len(numbers) > 0 && len(left) == 0 {
			break
		}
	}
	for _, n := range numbers {
		if left[n] {
			return nil, cli.Usagef("version %d: the store holds no such version, see kiloshard map history", n)
		}
	}
	if len(found) == 0 {
		return nil, mapstore.ErrNoMap
	}
	return found, nil
}

// version returns one version, the present one for -1.
func (s *session) version(ctx context.Context, number int) (mapstore.Entry, error) {
	if number < 0 {
		return s.Load(ctx)
	}
	found, err := s.versions(ctx, number)
	if err != nil {
		return mapstore.Entry{}, err
	}
	return found[0], nil
}

// parseVersion reads the number of a version.
func parseVersion(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, cli.Usagef("version %q: expected a whole number, see kiloshard map history", text)
	}
	return int(n), nil
}

// writeOutput writes into a file that only its owner can read, or to standard output for an empty name.
func writeOutput(a *cli.App, path string, text []byte) error {
	if path == "" {
		_, err := a.Stdout.Write(text)
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
