package maps

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/mapstore"
)

// shownMap is a version of the map as JSON has it. The DSNs are left out.
type shownMap struct {
	cli.MapVersion
	Store string        `json:"store"`
	Map   shards.Config `json:"map"`
}

func showCommand(a *cli.App) *cobra.Command {
	version := -1
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Prints the map, or an older version of it",
		Long: `Prints the map in the store, or an older version of it, with who made it, when and why. DSNs that hold a
password are not shown.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				entry, err := s.version(ctx, version)
				if err != nil {
					return err
				}
				return showMap(a, s, entry)
			})
		},
	}
	cmd.Flags().IntVar(&version, "at", -1, "the version of the map (default the present one)")
	cmd.Flags().Lookup("at").DefValue = "0"                      // so that the help does not tell it
	_ = cmd.RegisterFlagCompletionFunc("at", completeVersion(a)) // fails only for a flag that is not there
	return cmd
}

func showMap(a *cli.App, s *session, entry mapstore.Entry) error {
	hidden, err := withoutPasswords(entry.Map.Config()).Map()
	if err != nil {
		return err
	}
	text, err := s.text(hidden)
	if err != nil {
		return err
	}
	shown := shownMap{cli.VersionOf(entry), s.where, hidden.Config()}
	return a.Print(shown, func() {
		a.Say("# %s, in %s", shown.MapVersion, shown.Store)
		fmt.Fprint(a.Stdout, string(text))
	})
}

// withoutPasswords returns the config with another text in the place of each DSN that may hold a password.
func withoutPasswords(c shards.Config) shards.Config {
	hosts := make([]shards.Host, len(c.Hosts))
	for i, h := range c.Hosts {
		hosts[i] = h
		hosts[i].DSN = shownDSN(h.DSN)
		hosts[i].Replicas = nil
		for _, dsn := range h.Replicas {
			hosts[i].Replicas = append(hosts[i].Replicas, shownDSN(dsn))
		}
	}
	c.Hosts = hosts
	return c
}

// shownDSN returns a DSN as written, or of one that may hold a password no more than the address.
func shownDSN(dsn string) string {
	if !mapstore.MayHoldPassword(dsn) {
		return dsn
	}
	if address := (shards.Host{DSN: dsn}).Address(); address != "" {
		return address + " (not shown, since it may hold a password)"
	}
	return "not shown, since it may hold a password"
}

// historyItem is a version and what was new in it.
type historyItem struct {
	cli.MapVersion
	Changes []mapChange `json:"changes"`
}

func historyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "history",
		Short: "Prints the versions of the map: when, who, why, and what changed",
		Long: `Prints the versions of the map in the store, the newest first: when and by whom each was made, why, and what
changed. A control database records the role; the person and the reason are what the role claimed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onMap(a, cmd, func(ctx context.Context, s *session) error {
				entries, err := s.versions(ctx)
				if err != nil {
					return err
				}
				return printHistory(a, entries)
			})
		},
	}
}

func printHistory(a *cli.App, entries []mapstore.Entry) error {
	items := make([]historyItem, len(entries))
	rows := [][]string{{">VERSION", "WHEN", "~WHO", "~WHY", "~CHANGED"}}
	for i, entry := range entries {
		items[i] = historyItem{cli.VersionOf(entry), []mapChange{}}
		changed := entry.Map.String()
		if i+1 < len(entries) {
			items[i].Changes = changesBetween(entries[i+1].Map, entry.Map)
			changed = summary(items[i].Changes)
		}
		v := items[i].MapVersion
		rows = append(rows, []string{strconv.Itoa(v.Version), cli.Stamp(v.At), v.Who(), cli.OneLine(v.Why), changed})
	}
	return a.Print(items, func() { a.Table(rows) })
}
