package moves

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// planMoves prints what a move would do.
func planMoves(ctx context.Context, a *cli.App, cfg move.RunConfig) error {
	planned, err := move.Plan(ctx, cfg)
	if err != nil {
		return err
	}
	return printPlanned(a, planned)
}

func printPlanned(a *cli.App, planned []move.Planned) error {
	result, bad := []move.Planned{}, 0
	rows := [][]string{{">SHARD", "FROM", "TO", ">SIZE", "PROBLEMS"}}
	for _, p := range planned {
		if len(p.Problems) > 0 {
			bad++
		}
		p.Problems, p.Notes = append([]string{}, p.Problems...), append([]string{}, p.Notes...)
		result = append(result, p)
		rows = append(rows, []string{cli.Thousands(int(p.Shard)), p.Source, p.Target, cli.Megabytes(p.Bytes), strings.Join(p.Problems, "; ")})
	}
	printed := a.Print(map[string]any{"dry_run": true, "moves": result}, func() {
		a.Table(rows)
		sayNotes(a, planned)
		a.Say("%s to be moved, %d cannot be; nothing is changed", cli.Count(len(planned)-bad, "shard"), bad)
	})
	if bad > 0 {
		return errors.Join(printed, cli.ErrSilent)
	}
	return printed
}

// sayNotes prints the notes on moves, each once.
func sayNotes(a *cli.App, planned []move.Planned) {
	of, space := map[string][]shards.Number{}, map[string]int64{}
	for _, p := range planned {
		space[p.Target] += p.Space
		for _, note := range p.Notes {
			of[note] = append(of[note], p.Shard)
		}
	}
	for _, note := range slices.Sorted(maps.Keys(of)) {
		a.Say("shards %s: %s", shards.SetOf(of[note]...), note)
	}
	for _, host := range slices.Sorted(maps.Keys(space)) {
		a.Say("%s: it takes %s there; how much is free on its disk is unknown, since SQL does not tell", host, cli.Megabytes(space[host]))
	}
}

// Row is a move of the ledger as JSON has it.
type Row struct {
	ID      string        `json:"id"`
	Shard   shards.Number `json:"shard"`
	Source  string        `json:"source"`
	Target  string        `json:"target"`
	Step    string        `json:"step"`
	Outcome string        `json:"outcome"` // empty while it is under way
	By      string        `json:"by"`
	Began   time.Time     `json:"began"`
	Since   time.Time     `json:"since"` // when the step was begun
	Error   string        `json:"error"`
	Working bool          `json:"working"` // a mover is at work on it
	Back    string        `json:"back"`    // how it can be rolled back, or why it cannot any more; empty without a way back
	Returns string        `json:"returns"` // the ID of the move that it rolls back

	unserved bool // by any host: it is fenced, no mover is at work, and the map names the source
}

func rowOf(v ledger.Move) Row {
	return Row{
		ID: v.ID, Shard: v.Shard, Source: v.Source, Target: v.Target, Step: string(v.Step), Outcome: string(v.Outcome), By: v.Who,
		Began: v.Began.UTC(), Since: v.Stepped.UTC(), Error: v.Error, Working: v.Working, Back: wayBackOf(v), Returns: v.Returns,
	}
}

func statusCommand(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Shows moves under way, and finished ones that are not cleaned",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			moves, err := move.Status(cmd.Context(), m)
			if err != nil && len(moves) > 0 {
				err = cli.Partly(err)
			}
			result := []Row{}
			rows := [][]string{{">SHARD", "FROM", "TO", "STEP", "SINCE", "~OUTCOME", "~WAY BACK", "~ERROR"}}
			for _, v := range moves {
				if !all && v.Outcome != ledger.UnderWay && v.Outcome != ledger.Moved {
					continue
				}
				row := rowOf(v)
				result = append(result, row)
				outcome := string(v.Outcome)
				if v.Outcome == ledger.UnderWay {
					outcome = "under way, mover " + row.mover()
				}
				rows = append(rows, []string{cli.Thousands(int(v.Shard)), v.Source, v.Target, string(v.Step), cli.Stamp(v.Stepped), outcome, cli.OneLine(row.Back), cli.OneLine(v.Error)})
			}
			return errors.Join(a.Print(map[string]any{"moves": result}, func() {
				switch {
				case len(result) > 0:
					a.Table(rows)
				case err == nil: // else it is unknown
					a.Say("no moves")
				}
			}), err)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show those that were aborted, rolled back or cleaned, too")
	return cmd
}

func cleanCommand(a *cli.App) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "clean [SHARDS]",
		Short: "Drops what moves left: old schemas of moved shards, and fences",
		Long: `Drops the old schemas of moved shards and the fences in their place. A client without the map then gets the
error that the tables do not exist, and no longer the name of the new host. It asks first; without a terminal it needs --yes.

It skips a shard whose way back is open, unless you name the shard: that closes the way back. It removes and lists slots,
publications, subscriptions and fences that a ledger knows and no move needs. It lists those that no ledger
knows and leaves them alone, because somebody else may have made them.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			var only shards.Set
			what := "The old schemas of all shards that have moved will be dropped, with their rows."
			if len(args) > 0 {
				if only, err = cli.ParseSet(m, "shards", args[0]); err != nil {
					return err
				}
				what = "The old schemas of shards " + only.String() + " will be dropped, with their rows."
			}
			if err := a.Confirm(yes, what); err != nil {
				return err
			}
			a.Audit(cmd.Context(), m.Hosts(), nil)
			cleaned, err := move.Clean(cmd.Context(), m, only)
			result := map[string]any{"cleaned": cleaned.Done, "open": cleaned.Open, "removed": append([]string{}, cleaned.Removed...), "unknown": append([]string{}, cleaned.Unknown...)}
			return errors.Join(a.Print(result, func() {
				a.Say("%s cleaned", cli.Count(cleaned.Done.Len(), "shard"))
				if cleaned.Open.Len() > 0 {
					a.Say("shards %s can still be rolled back, so their old schemas are kept: name them to drop these", cleaned.Open)
				}
				for _, thing := range cleaned.Removed {
					a.Say("removed: %s", thing)
				}
				for _, thing := range cleaned.Unknown {
					a.Say("left alone, since no ledger knows it: %s", thing)
				}
			}), err)
		},
	}
	cli.YesFlag(cmd, &yes)
	return cmd
}
