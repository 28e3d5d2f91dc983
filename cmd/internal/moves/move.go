// Package moves is kiloshard move, drain, rebalance and split: shards that change their host.
package moves

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
)

// moveFlags are those of the commands that work on moves.
type moveFlags struct {
	cfg  move.RunConfig
	rate int64 // MB/s

	rollbackWAL int64 // MB
	writesOver  time.Duration
	dryRun      bool
	verbose     bool
}

func (f *moveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.cfg.MaxPause, "max-pause", 2*time.Second, "the most that writers wait in one try of a cutover")
	flags.DurationVar(&f.cfg.MaxLag, "max-lag", 0, "how far behind the target may be when a cutover begins (default a quarter of --max-pause)")
	flags.BoolVar(&f.cfg.Offline, "offline", false, "copy shards while they are locked, for hosts without logical replication: readers and writers wait as long as that takes")
	flags.Int64Var(&f.rate, "rate", 0, "MB a second that are copied of each shard at most; rows are compared a little at a time then (default no limit)")
	flags.DurationVar(&f.cfg.LockTimeout, "lock-timeout", 300*time.Millisecond, "how long a cutover waits for locks at most, and keeps others waiting behind it; the first try waits 20 ms")
	flags.DurationVar(&f.cfg.RetryLimit, "patience", 0, "how long cutovers are tried, and old transactions waited for (default no limit)")
	flags.DurationVar(&f.cfg.VerifyPause, "verify-pause", 50*time.Millisecond, "how long the last changes of a shard above 8 MiB may be compared while writers wait")
	flags.IntVar(&f.cfg.PerHost, "per-host", 2, "how many moves at a time from or to one host")
	flags.StringVar(&f.cfg.Login, "login", "", `what the target adds to the source's address to log in there, such as "passfile=/var/lib/postgresql/.pgpass"`)
	flags.BoolVar(&f.cfg.LoginWithPassword, "login-with-password", false, "put the password of the source's DSN into the subscription, where superusers of the target can read it until the move ends")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print each step of each move, not only its end and what holds it up")
	flags.StringVar(&f.cfg.By, "by", "", "who moves, for the ledger and the map's history (default user@machine)")
}

// Command is kiloshard move.
func Command(a *cli.App) *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move SHARDS --to HOST",
		Short: "Moves shards to another host while services write",
		Long: `Moves shards to another host while services write. It copies the rows of a shard, logical replication streams
the writes made during the copy, and a cutover of some milliseconds changes the shard's host. Routers that follow
the map send calls that arrive in between to the new host; other clients get an error that names that host.
See kiloshard help moves.

Each move is in a ledger on its hosts. After an interrupt or a crash, "move resume" continues it, or
"move abort" takes it back. The old schema stays on the source, under another name, until "move clean".

With --rollback-for, "move rollback" can take the shard back until then without a copy and without losing the
writes made since. The command keeps running after the move and applies those writes to the old schema. See
kiloshard help rollback.`,
		Example: "  kiloshard move 7,100-120 --to pg-b\n  kiloshard move 7 --to pg-b --rollback-for 1h",
		Args:    shardsOrCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return onMoves(cmd.Context(), a, &f, args[0], func(ctx context.Context, cfg move.RunConfig) error {
				if f.dryRun {
					return planMoves(ctx, a, cfg)
				}
				return moveAndKeep(ctx, a, cfg, "moved to "+cfg.To)
			})
		},
	}
	f.add(cmd)
	f.addWayBack(cmd)
	cmd.Flags().StringVar(&f.cfg.To, "to", "", "the host that the shards move to")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "make all checks, and move nothing")
	_ = cmd.MarkFlagRequired("to")                           // fails only for a flag that is not there
	_ = cmd.RegisterFlagCompletionFunc("to", a.CompleteHost) // likewise
	cmd.ValidArgsFunction = a.CompleteShard
	cmd.AddCommand(
		underWayCommand(a, "resume", "Continues moves that were interrupted", "resumed", "", resume(a)),
		abortCommand(a),
		underWayCommand(a, "verify", "Compares the rows of moves under way, and of ones not cleaned", "compared", "", move.Verify),
		underWayCommand(a, "rollback", "Takes shards back that moved with --rollback-for", "rolled back", "All shards whose way back is open will go back to their old hosts.", move.Rollback),
		keepCommand(a), statusCommand(a), cleanCommand(a),
	)
	return cmd
}

// shardsOrCommand takes a word for a subcommand that was mistyped: shards are numbers.
func shardsOrCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && strings.IndexFunc(args[0], unicode.IsLetter) == 0 {
		return cli.NeedsCommand(cmd, args)
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// underWayCommand is a command for moves in the ledger. Without shards it takes all, and says so first and asks, if there is something to say.
func underWayCommand(a *cli.App, use, short, did, all string, do func(context.Context, move.Config) (move.Report, error)) *cobra.Command {
	var f moveFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   use + " [SHARDS]",
		Short: short,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := ""
			if len(args) > 0 {
				set = args[0]
			} else if all != "" {
				if err := a.Confirm(yes, all); err != nil {
					return err
				}
			}
			return onMoves(cmd.Context(), a, &f, set, func(ctx context.Context, cfg move.RunConfig) error {
				if use != "verify" { // which changes nothing
					a.Audit(ctx, cfg.Map.Hosts(), nil)
				}
				return runMoves(ctx, a, cfg, did, func(ctx context.Context, cfg move.RunConfig) (move.Report, error) { return do(ctx, cfg.Config) })
			})
		},
	}
	cmd.ValidArgsFunction = a.CompleteShard
	f.add(cmd)
	if all != "" {
		cmd.Long = short + ".\nWithout SHARDS it takes all, and asks first; without a terminal it then needs --yes."
		cli.YesFlag(cmd, &yes)
	}
	return cmd
}

// abortCommand takes moves back.
func abortCommand(a *cli.App) *cobra.Command {
	var gone bool
	cmd := underWayCommand(a, "abort", "Takes back moves whose target does not serve yet", "taken back", "All moves under way will be taken back.",
		func(ctx context.Context, cfg move.Config) (move.Report, error) {
			if gone {
				return move.AbortWithoutTarget(ctx, cfg)
			}
			return move.Abort(ctx, cfg)
		})
	cmd.Long += `

With --target-gone it takes back moves whose target is down and will not come back. It removes what they made on
the source and prints what they leave on the target. If the target does come back, "move clean" drops that.`
	cmd.Flags().BoolVar(&gone, "target-gone", false, "the target is down and will not come back: leave what the move made there")
	return cmd
}

// onMoves opens the store and reads the map for one command.
func onMoves(ctx context.Context, a *cli.App, f *moveFlags, set string, run func(context.Context, move.RunConfig) error) error {
	if f.cfg.MaxPause <= 0 || f.cfg.LockTimeout <= 0 || f.cfg.PerHost < 1 || f.cfg.RetryLimit < 0 {
		return cli.Usagef("--max-pause, --lock-timeout and --per-host: expected more than 0; --patience 0 or more")
	}
	if f.rate < 0 {
		return cli.Usagef("--rate %d: expected MB a second, or 0 for no limit", f.rate)
	}
	f.cfg.Rate = f.rate * 1e6
	if f.cfg.RollbackFor < 0 || f.cfg.RollbackFor > 0 && f.rollbackWAL < 1 {
		return cli.Usagef("--rollback-for and --rollback-wal: expected a time, and 1 MB or more")
	}
	f.cfg.RollbackWAL = f.rollbackWAL * 1e6
	if f.writesOver < 0 {
		return cli.Usagef("--writes-over %s: expected a time, or 0 for sizes alone", f.writesOver)
	}
	_, store, now, err := a.OpenMap(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // all that it was to do is done
	cfg := f.cfg
	cfg.Map, cfg.Store = now.Map, store
	if cfg.Shards, err = cli.ParseSet(cfg.Map, "shards", set); err != nil {
		return err
	}
	if cfg.By == "" {
		cfg.By = cli.Whoami()
	}
	if cfg.To != "" && len(cfg.Map.NumbersOn(cfg.To)) == 0 {
		if err := knownHost(cfg.Map, "--to", cfg.To); err != nil {
			return err
		}
	}
	cfg.Hold = holdOf(ctx)
	if !a.Quiet {
		cfg.Events = newTeller(a, cfg, f.verbose).event
	}
	return run(ctx, cfg)
}

// knownHost checks the name of a host, which an argument or a flag gives.
func knownHost(m *shards.Map, given, name string) error {
	if _, ok := m.HostNamed(name); ok {
		return nil
	}
	return cli.Usagef("%s %s: expected the name of a host of the map, see kiloshard status", given, name)
}

// moveResult is what the commands that work on moves print as JSON.
type moveResult struct {
	To           string            `json:"to,omitempty"`
	Done         shards.Set        `json:"done"`
	Unmoved      shards.Set        `json:"unmoved"` // that were on the host already
	Failed       []cli.FailedShard `json:"failed"`
	Resumable    shards.Set        `json:"resumable"` // those of the others whose move is under way still
	NotAttempted shards.Set        `json:"not_attempted"`
	Seconds      float64           `json:"seconds"`
}

// leavesOld reports whether an operation leaves old schemas behind, for move clean.
func leavesOld(did string) bool { return did != "taken back" && did != "compared" }

// runMoves runs an operation on moves and prints its report.
func runMoves(ctx context.Context, a *cli.App, cfg move.RunConfig, did string, do func(context.Context, move.RunConfig) (move.Report, error)) error {
	began := time.Now()
	closeLost(ctx, a, cfg, false)
	report, err := do(ctx, cfg)
	a.Flush()
	var partial *shards.PartialError
	if err != nil && !errors.As(err, &partial) {
		return err
	}
	result := moveResult{To: cfg.To, Done: report.Done, Unmoved: report.Unmoved, Resumable: report.Resumable, Failed: []cli.FailedShard{}, Seconds: time.Since(began).Seconds()}
	if partial != nil {
		result.Failed, result.NotAttempted = cli.Failures(partial), partial.NotAttempted
	}
	if cfg.Shards.Len() > 0 && report.Done.Len()+report.Unmoved.Len() == 0 && partial == nil {
		a.Warn("warning: shards %s have no move that could be %s: see kiloshard move status --all", cfg.Shards, did)
	}
	printed := a.Print(result, func() {
		a.Say("%s %s, %s there already, %s, in %s", cli.Count(report.Done.Len(), "shard"), did, cli.Thousands(report.Unmoved.Len()),
			cli.Left(partial), time.Since(began).Round(time.Millisecond))
		if report.Resumable.Len() > 0 {
			a.Say("moves under way still (shards %s): kiloshard move resume, or move abort", a.ShortSet(report.Resumable))
		} else if report.Done.Len() > 0 && leavesOld(did) && cfg.RollbackFor <= 0 {
			a.Say("next: kiloshard move clean, to drop the old schemas of moved shards")
		}
	})
	if partial == nil {
		return printed
	}
	a.PrintFailures(cfg.Map, partial)
	if report.Resumable.Len()+report.Done.Len() > 0 {
		return errors.Join(printed, cli.Partly(cli.Told(partial)))
	}
	return errors.Join(printed, cli.Told(partial))
}
