package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// movePlan is a shard that move --dry-run has looked at, as JSON has it.
type movePlan struct {
	Shard    shards.Number `json:"shard"`
	Source   string        `json:"source"`
	Target   string        `json:"target"`
	Bytes    int64         `json:"bytes"`
	Problems []string      `json:"problems"`
}

// planMoves prints what a move would do.
func (a *app) planMoves(ctx context.Context, cfg move.Config) error {
	planned, err := move.Plan(ctx, cfg)
	if err != nil {
		return err
	}
	result, bad := []movePlan{}, 0
	rows := [][]string{{">SHARD", "FROM", "TO", ">SIZE", "PROBLEMS"}}
	for _, p := range planned {
		if len(p.Problems) > 0 {
			bad++
		}
		result = append(result, movePlan{p.Shard, p.Source, p.Target, p.Bytes, append([]string{}, p.Problems...)})
		rows = append(rows, []string{thousands(int(p.Shard)), p.Source, p.Target, megabytes(p.Bytes), strings.Join(p.Problems, "; ")})
	}
	printed := a.print(map[string]any{"dry_run": true, "moves": result}, func() {
		a.table(rows)
		a.say("%s to be moved, %d cannot be; nothing is changed", count(len(planned)-bad, "shard"), bad)
	})
	if bad > 0 {
		return errors.Join(printed, errSilent)
	}
	return printed
}

// moveRow is a move of the ledger as JSON has it.
type moveRow struct {
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
}

func (a *app) moveStatusCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Shows the moves that are under way, and those whose old schemas are still there",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.loadMap(cmd.Context())
			if err != nil {
				return err
			}
			moves, err := move.Status(cmd.Context(), m)
			result := []moveRow{}
			rows := [][]string{{">SHARD", "FROM", "TO", "STEP", "SINCE", "OUTCOME", "ERROR"}}
			for _, v := range moves {
				if !all && v.Outcome != move.UnderWay && v.Outcome != move.Moved {
					continue
				}
				result = append(result, moveRow{v.ID, v.Shard, v.Source, v.Target, string(v.Step), string(v.Outcome), v.Who, v.Began.UTC(), v.Stepped.UTC(), v.Error})
				outcome := string(v.Outcome)
				if v.Outcome == move.UnderWay {
					outcome = "under way"
				}
				rows = append(rows, []string{thousands(int(v.Shard)), v.Source, v.Target, string(v.Step), stamp(v.Stepped), outcome, oneLine(v.Error)})
			}
			return errors.Join(a.print(map[string]any{"moves": result}, func() {
				if len(result) == 0 {
					a.say("no moves")
					return
				}
				a.table(rows)
			}), err)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "show those that were aborted or cleaned, too")
	return cmd
}

func (a *app) moveCleanCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "clean [SHARDS]",
		Short: "Drops the old schemas of shards that have moved, and the fences in their place",
		Long: `Drops the old schemas of shards that have moved, and the fences in their place: who knows nothing of the moves then
reads that the tables do not exist, instead of where they went. It asks first; without a terminal it needs --yes.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, m, err := a.loadMap(cmd.Context())
			if err != nil {
				return err
			}
			var only shards.Set
			what := "The old schemas of all shards that have moved will be dropped, with their rows."
			if len(args) > 0 {
				if only, err = parseSet(m, "shards", args[0]); err != nil {
					return err
				}
				what = "The old schemas of shards " + only.String() + " will be dropped, with their rows."
			}
			if err := a.confirm(yes, what); err != nil {
				return err
			}
			cleaned, err := move.Clean(cmd.Context(), m, only)
			return errors.Join(a.print(map[string]any{"cleaned": cleaned}, func() {
				a.say("%s cleaned", count(cleaned.Len(), "shard"))
			}), err)
		},
	}
	yesFlag(cmd, &yes)
	return cmd
}
