package bench

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/throwaway"
)

func failoverCommand(a *cli.App) *cobra.Command {
	cfg := bench.FailoverConfig{Progress: func(what string) { fmt.Fprintln(a.Stderr, "measuring:", what) }}
	var seconds, down, failAfter float64
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Hosts that fail under load",
		Long: `Two hosts under load, of which one fails. Half of the callers write, half of them read,
none has a time limit, and each makes a call again when the router says that it is safe.
Afterwards every write that was acknowledged is looked for.

The parts, which --only selects, and what is wanted of the router in each:

  kill    the primary's processes are killed, and its synchronous standby is promoted
  freeze  the same with SIGSTOP, as a machine that hangs; it goes on after the promotion,
          believing that it is still the primary
  cut     nothing comes through the network to the host for a while

In all of them: no error on the other host, and a p99 there within 1.5 times that of
before; writes within 2 s of the promotion, and within 1 s of the end of the cut; no
acknowledged write lost, none there twice, none on the old primary.

It needs the binaries of Postgres on this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, bench.FailoverParts()); err != nil {
				return err
			}
			for name, value := range map[string]float64{"seconds": seconds, "down": down, "fail-after": failAfter} {
				if !(value > 0 && value <= 3600) {
					return cli.Usagef("--%s %g: expected more than 0, and 3600 at most", name, value)
				}
			}
			if cfg.Callers < 2 {
				return cli.Usagef("--callers %d: expected 2 or more", cfg.Callers)
			}
			cfg.Turn, cfg.Down = time.Duration(seconds*float64(time.Second)), time.Duration(down*float64(time.Second))
			cfg.FailAfter = time.Duration(failAfter * float64(time.Second))
			cfg.Servers = throwaway.LocalConfig()
			cfg.Servers.DSN = "" // a server that is not ours is not killed
			cfg.Servers.Settings = map[string]string{"fsync": "on"}
			report, err := bench.Failover(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return a.Print(report, func() { printFailoverReport(a, report) })
		},
	}
	onlyFlag(cmd, &cfg.Only, bench.FailoverParts())
	cmd.Flags().Float64Var(&seconds, "seconds", 4, "of the load before the fault, and after it is over")
	cmd.Flags().Float64Var(&down, "down", 3, "seconds from the fault to the promotion, or to the end of the cut")
	cmd.Flags().Float64Var(&failAfter, "fail-after", 1.5, "seconds that a host may be silent")
	cmd.Flags().IntVar(&cfg.Callers, "callers", 16, "of each host")
	return cmd
}

func printFailoverReport(a *cli.App, report *bench.FailoverReport) {
	for i, f := range report.Parts {
		if i > 0 {
			a.Say("")
		}
		rows := [][]string{{"PART", "WHAT", ">FIGURE"}}
		add := func(what, value string) { rows = append(rows, []string{f.Part, what, value}) }
		add("other host, calls", cli.Thousands(f.OtherCalls))
		add("other host, errors", cli.Thousands(f.OtherErrors))
		add("other host, p99 before, ms", figure(f.OtherBeforeP99))
		add("other host, p99 during, ms", figure(f.OtherDuringP99))
		add("other host, p99 during to before", fmt.Sprintf("%.2f", f.OtherRatio))
		if f.FirstError != nil {
			add("fault to the first error, ms", figure(*f.FirstError))
		}
		add("fault to the end of the last call under way, ms", figure(f.LastStuck))
		if f.FailFast != nil {
			add("calls that fail while it is down, p99, ms", figure(*f.FailFast))
		}
		able := "promotion"
		if f.Part == "cut" {
			able = "end of the cut"
		}
		add(able+" to the first write, ms", figure(f.Resume))
		for _, kind := range slices.Sorted(maps.Keys(f.Errors)) {
			add("errors: "+kind, cli.Thousands(f.Errors[kind]))
		}
		add("writes acknowledged", cli.Thousands(f.Acked))
		add("  of them lost", cli.Thousands(f.Lost))
		add("  there more than once", cli.Thousands(f.Doubled))
		add("writes that may have run", cli.Thousands(f.Unknown))
		add("  of them there", cli.Thousands(f.UnknownRan))
		add("rows on the old primary alone", cli.Thousands(f.Astray))
		a.Table(rows)
	}
	a.Say("%s on each host; promoted, or whole again, %g s after the fault; down after %g s of silence.",
		cli.Count(report.Callers, "caller"), report.Down, report.FailAfter)
	a.Say("PostgreSQL %s, fsync %s.", report.Server, report.Fsync)
}
