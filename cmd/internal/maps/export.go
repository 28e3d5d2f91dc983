package maps

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// exportedMap is the JSON output of kiloshard map export: the texts themselves without a file, else where they are.
type exportedMap struct {
	Written  string            `json:"written,omitempty"`
	Versions []exportedVersion `json:"versions"`
}

type exportedVersion struct {
	cli.MapVersion
	Document string `json:"document,omitempty"`
}

func exportCommand(a *cli.App) *cobra.Command {
	version, withHistory := -1, false
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Writes the map, or all its versions, for kiloshard map import",
		Long: `Writes the map, an older version of it, or with --history all versions, to FILE or to standard output.
kiloshard map import reads it, into another store too. Without --history it is a complete kiloshard.yaml.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if withHistory && version >= 0 {
				return cli.Usagef("--history: expected no --at with it")
			}
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				var entries []mapstore.Entry
				var err error
				if withHistory {
					entries, err = s.versions(ctx)
				} else {
					entries = make([]mapstore.Entry, 1)
					entries[0], err = s.version(ctx, version)
				}
				if err != nil {
					return err
				}
				return export(a, entries, path, withHistory)
			})
		},
	}
	cmd.Flags().IntVar(&version, "at", -1, "the version of the map (default the present one)")
	cmd.Flags().Lookup("at").DefValue = "0" // so that the help does not tell it
	cmd.Flags().BoolVar(&withHistory, "history", false, "all versions, with who made them, when and why")
	return cmd
}

// export writes versions, given newest first.
func export(a *cli.App, entries []mapstore.Entry, path string, withHistory bool) error {
	result := exportedMap{Written: path}
	var versions []writtenVersion
	for i := len(entries) - 1; i >= 0; i-- {
		document, err := exported(entries[i].Map.Config())
		if err != nil {
			return err
		}
		v := writtenVersion{cli.VersionOf(entries[i]), document}
		versions = append(versions, v)
		e := exportedVersion{MapVersion: v.MapVersion}
		if path == "" {
			e.Document = string(document)
		}
		result.Versions = append(result.Versions, e)
	}
	text := versions[0].document
	if withHistory {
		var err error
		if text, err = writeHistory(versions); err != nil {
			return err
		}
	}
	if a.Output != cli.JSON || path != "" {
		if err := writeOutput(a, path, text); err != nil {
			return fmt.Errorf("cannot write the map: %w", err)
		}
	}
	if path == "" && a.Output != cli.JSON {
		return nil
	}
	return a.Print(result, func() {
		a.Say("%s, written to %s", cli.Count(len(versions), "version"), path)
	})
}

// exported returns a map as a document for other stores. None of them takes a password, and this is no way to print one.
func exported(c shards.Config) ([]byte, error) {
	for i, h := range c.Hosts {
		for _, dsn := range append([]string{h.DSN}, h.Replicas...) {
			if mapstore.MayHoldPassword(dsn) {
				return nil, &shards.FieldError{
					Field: fmt.Sprintf("hosts[%d].dsn", i), Found: "a DSN of host " + h.Name + " that may hold a password, which no store takes",
					Expected: "a variable such as ${PG_A_PASSWORD} in its place, or a .pgpass or service file",
				}
			}
		}
	}
	return c.Shared().YAML()
}
