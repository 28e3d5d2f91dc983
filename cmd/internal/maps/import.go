package maps

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

func importCommand(a *cli.App) *cobra.Command {
	var flags changeFlags
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Stores a map, also in an empty store",
		Long: `Stores the map in FILE, or on standard input for -, as the next version, as kiloshard map edit does. Into an
empty store it brings the first map, with a version one above that of FILE: a service that followed the map in
another store sees it rise. A file of kiloshard map export --history keeps its versions, with who made them
and why; the store must be empty. After an interrupt, run it again.

--replace replaces a first map that was imported by mistake, while none of its shards exists.

To move a map to another store, export it from one and import it with a config that names the other. With
store file, and no file yet, -c names the file to write.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readInput(a, args[0])
			if err != nil {
				return err
			}
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				now, err := s.Load(ctx)
				if err != nil && !errors.Is(err, mapstore.ErrNoMap) {
					return err
				}
				history, ok, err := readHistory(text)
				if err != nil {
					return err
				}
				if ok {
					return importHistory(ctx, a, s, now, args[0], history, flags)
				}
				return importMap(ctx, a, s, now, args[0], text, flags)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&flags.replace, "replace", false, "in the place of a map that was imported by mistake: any map may follow while no shard of the present one is on any host, which is looked up")
	cmd.Flags().BoolVar(&flags.yes, "yes", false, "with --replace: hosts that do not answer have no shards")
	return cmd
}

// importMap makes one document the next version, or the first.
func importMap(ctx context.Context, a *cli.App, s *session, now mapstore.Entry, file string, text []byte, f changeFlags) error {
	written, err := shards.Parse(file, text, a.Unset)
	if err != nil {
		return err
	}
	if now.Map != nil && f.replace {
		written.Version = 0 // it need not be an edited copy of the present one
	}
	if now.Map != nil {
		if err := s.base(now, written, f); err != nil {
			return err
		}
	} else if f.from > 0 {
		return &mapstore.ConflictError{Wanted: f.from}
	}
	return change(ctx, a, s, now, written, f)
}

// importedHistory is the JSON output of kiloshard map import for a history.
type importedHistory struct {
	cli.MapVersion
	Versions int  `json:"versions"` // that were brought
	DryRun   bool `json:"dry_run,omitempty"`
}

// importHistory brings versions, the oldest first, with their numbers into a store that holds none, or the first of them.
func importHistory(ctx context.Context, a *cli.App, s *session, now mapstore.Entry, file string, history []writtenVersion, f changeFlags) error {
	maps := make([]*shards.Map, len(history))
	for i, v := range history {
		written, err := shards.Parse(fmt.Sprintf("%s, version %d", file, v.Version), v.document, a.Unset)
		if err != nil {
			return err
		}
		written.Version = v.Version
		if maps[i], err = s.toBe(written, false).Map(); err != nil {
			return err
		}
	}
	// Only versions that follow one another can be made again with their numbers.
	first := len(history) - 1
	for first > 0 && history[first-1].Version > 0 && history[first-1].Version == history[first].Version-1 {
		first--
	}
	from := 0
	if now.Map != nil {
		from = now.Map.Version()
		i := from - history[first].Version
		if i < 0 || first+i >= len(history) || from == 0 || len(changesBetween(now.Map, maps[first+i])) > 0 {
			return cli.Usagef("%s holds %s: expected no map, or one of the versions in %s, which goes on from there", s.where, cli.VersionOf(now), file)
		}
		first += i + 1
	}
	result := importedHistory{Versions: len(history) - first, DryRun: f.dryRun}
	result.MapVersion = history[len(history)-1].MapVersion
	for i := first; i < len(history) && !f.dryRun; i++ {
		next := mapstore.Change{Config: maps[i].Config(), By: history[i].By, Why: carried(history[i].MapVersion), KeysMoved: true}
		next.Config.Version = max(0, history[i].Version-1)
		made, err := s.Swap(ctx, from, next)
		if err != nil {
			return fmt.Errorf("version %d: %w", history[i].Version, s.explain(ctx, err))
		}
		from, result.MapVersion = made.Map.Version(), cli.VersionOf(made)
	}
	if result.Versions > 0 && !f.dryRun {
		a.AuditMap(ctx)
	}
	return a.Print(result, func() {
		verb := "brought to"
		if f.dryRun {
			verb = "would be brought to"
		}
		a.Say("%s %s %s: it is at version %d", cli.Count(result.Versions, "version"), verb, s.where, result.Version)
	})
}

var carriedBefore = regexp.MustCompile(`\(made [0-9TZ:-]+\)$`)

// carried returns why a version was made, and when, which a store to which it is brought cannot know. Where there is no room
// for both, it is why.
func carried(v cli.MapVersion) string {
	text := "(made " + v.At.UTC().Format(time.RFC3339) + ")"
	switch {
	case v.Why == "":
		return text
	case carriedBefore.MatchString(v.Why), len(v.Why)+1+len(text) > mapstore.MaxNote:
		return v.Why
	}
	return v.Why + " " + text
}
