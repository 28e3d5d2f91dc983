package moves

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
)

// SplitCommand is kiloshard split.
func SplitCommand(a *cli.App) *cobra.Command {
	var f moveFlags
	var to string
	var run, promote bool
	cmd := &cobra.Command{
		Use:   "split HOST --to NEW",
		Short: "Prints or runs the moves of half a host's load to another host",
		Long: `Prints the moves that take half a host's load, the half with fewer bytes, to another host of the map, such as a new
one. --run runs them while services write. After an interrupt, run "move resume"; "kiloshard rebalance" plans the moves that
did not start.

` + weighed + `

With --promote the other host is a physical standby of the first one, and nothing is copied. The command fences all leaving
shards at once, promotes the standby when it has replayed that, and changes the map. Callers of these shards wait
meanwhile, routers for up to 3 s. The map must name the standby as a host without shards, and nowhere else. See
kiloshard help promote for failures and for what the split refuses.`,
		Example: "  kiloshard split pg-a --to pg-c --run\n  kiloshard split pg-a --to pg-a-standby --promote --run",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onMoves(cmd.Context(), a, &f, "", func(ctx context.Context, cfg move.RunConfig) error {
				if err := errors.Join(knownHost(cfg.Map, "HOST", args[0]), knownHost(cfg.Map, "--to", to)); err != nil {
					return err
				}
				if args[0] == to {
					return cli.Usagef("split %s --to %s: expected another host", args[0], to)
				}
				if promote && (cfg.Offline || cfg.RollbackFor > 0) {
					return cli.Usagef("--promote copies nothing: expected neither --offline nor --rollback-for")
				}
				if promote {
					return promoteTo(ctx, a, cfg, args[0], to, run, f.writesOver)
				}
				return moveTo(ctx, a, cfg, !run, f.writesOver, func(u usage) map[shards.Number]string {
					return balance.Split(cfg.Map, args[0], to, u.bytes, u.writes)
				})
			})
		},
		ValidArgsFunction: a.CompleteHost,
	}
	f.add(cmd)
	f.addWayBack(cmd)
	f.addWritesOver(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the host that half of them move to")
	cmd.Flags().BoolVar(&run, "run", false, "move the shards")
	cmd.Flags().BoolVar(&promote, "promote", false, "promote the other host, which is a physical standby of this one, and copy nothing")
	_ = cmd.MarkFlagRequired("to")                           // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("to", a.CompleteHost) // likewise
	return cmd
}

// promotePlan is the JSON of split --promote without --run.
type promotePlan struct {
	DryRun   bool       `json:"dry_run"`
	Source   string     `json:"source"`
	Target   string     `json:"target"`
	Leave    shards.Set `json:"leave"`
	Stay     shards.Set `json:"stay"`
	Bytes    int64      `json:"bytes"` // of the shards that leave
	Problems []string   `json:"problems"`
	Notes    []string   `json:"notes"` // what one should know
}

// promotion is the part of a config that a promotion takes.
func promotion(c move.RunConfig) move.PromoteConfig {
	return move.PromoteConfig{
		Map: c.Map, Store: c.Store, Shards: c.Shards, To: c.To, MaxPause: c.MaxPause, MaxLag: c.MaxLag, RetryLimit: c.RetryLimit, LockTimeout: c.LockTimeout,
		Hold: c.Hold, By: c.By, Events: c.Events,
	}
}

// promoteTo splits a host by promoting its standby, or prints the plan.
func promoteTo(ctx context.Context, a *cli.App, cfg move.RunConfig, from, to string, run bool, writesOver time.Duration) error {
	if len(cfg.Map.NumbersOn(from)) < 2 {
		return cli.Usagef("split %s: expected a host with two shards or more", from)
	}
	if !run {
		closeLost(ctx, a, cfg, true)
	}
	use, err := measure(ctx, a, cfg.Map, writesOver)
	if err != nil {
		return err
	}
	leave := slices.Collect(maps.Keys(balance.Split(cfg.Map, from, to, use.bytes, use.writes)))
	cfg.Shards, cfg.To = shards.SetOf(leave...), to
	if run {
		source, _ := cfg.Map.HostNamed(from) // its standby gets the line with all other rows
		a.Audit(ctx, []shards.Host{source}, nil)
		return runMoves(ctx, a, cfg, "moved to "+to, func(ctx context.Context, cfg move.RunConfig) (move.Report, error) {
			return move.Promote(ctx, promotion(cfg))
		})
	}
	plan, err := move.PlanPromotion(ctx, promotion(cfg))
	if err != nil {
		return err
	}
	result := promotePlan{true, plan.Source, plan.Target, plan.Leave, plan.Stay, 0, append([]string{}, plan.Problems...), append([]string{}, plan.Notes...)}
	for _, n := range leave {
		result.Bytes += use.bytes[n]
	}
	printed := a.Print(result, func() {
		a.Table([][]string{
			{"FROM", "TO", ">SHARDS", ">SIZE", "WHICH"},
			{from, to, cli.Thousands(plan.Leave.Len()), cli.Megabytes(result.Bytes), a.ShortSet(plan.Leave)},
		})
		for _, note := range plan.Notes {
			a.Say("note: %s", note)
		}
		for _, problem := range plan.Problems {
			a.Say("problem: %s", problem)
		}
		if len(plan.Problems) > 0 {
			a.Say("%s cannot be promoted; nothing is changed", to)
			return
		}
		a.Say("%s to be promoted; %s keeps %s; nothing is changed", to, from, cli.Count(plan.Stay.Len(), "shard"))
	})
	if len(plan.Problems) > 0 {
		return errors.Join(printed, cli.ErrSilent)
	}
	return printed
}
