package adopt

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards/adopt/ledger"
	"github.com/kiloshard/kiloshard/shards/adopt/views"
)

func statusCommand(a *cli.App) *cobra.Command {
	var rows bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Says how far an adoption is, and who still writes the old way",
		Long: `Says at which gate an adoption is and what the rows of each shard are in; which roles and applications wrote to
which tables without a shard's path, and when last, to 10 s; what has changed in the structure of the old tables since
their views were made; and what the commands have done. --rows counts rows that are in no shard, because they reach no key:
it reads the tables once that can have such rows.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			state, err := views.Status(cmd.Context(), views.StatusConfig{Map: m, Rows: rows})
			if errors.Is(err, ledger.ErrNone) {
				return cli.Usage(err)
			}
			if err != nil {
				return err
			}
			return a.Print(state, func() { sayStatus(a, state, rows) })
		},
	}
	cmd.Flags().BoolVar(&rows, "rows", false, "count rows without a shard, too")
	return cmd
}

func sayStatus(a *cli.App, s *views.State, rows bool) {
	a.Say("Gate %s, since %s. Of %s: %d in views, %d being copied, %d in tables of their own.", s.Gate, cli.Stamp(s.Started),
		cli.Count(s.Shards, "shard"), s.Views.Len(), s.Copying.Len(), s.Tables.Len())
	if s.Missing.Len() > 0 {
		a.Say("%s without views, kiloshard adopt views makes them: %s", cli.Count(s.Missing.Len(), "shard"), a.ShortSet(s.Missing))
	}
	if len(s.OldWrites) == 0 {
		a.Say("Nobody has written without a shard's path.")
	} else {
		a.Say("\nWritten without a shard's path:")
		table := [][]string{{"TABLE", "ROLE", "~APPLICATION", "LAST", ">AGO"}}
		for _, w := range s.OldWrites {
			table = append(table, []string{w.Table, w.Role, w.Application, cli.Stamp(w.Last), max(0, time.Since(w.Last)).Round(time.Second).String()})
		}
		a.Table(table)
	}
	if len(s.Changes) > 0 {
		a.Say("\nThe old tables have changed since their views were made; kiloshard adopt views follows:")
		for _, change := range s.Changes {
			a.Say("- %s", oneLine(change))
		}
	}
	if rows {
		a.Say("\nRows without a shard: %s", keyless(s.Keyless))
	}
}

func keyless(all []views.Keyless) string {
	if len(all) == 0 {
		return "none"
	}
	text := ""
	for i, k := range all {
		if i > 0 {
			text += ", "
		}
		text += k.Table.String() + " " + cli.Thousands(int(k.Rows))
	}
	return text
}
