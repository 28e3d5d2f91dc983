package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "The bench harness: ours beside the other ways, in one run",
		Long: `The bench harness: ours beside the other ways, in one run, taking turns. It needs no
config: it measures on throw-away servers on this machine, or in databases of its own
on the server that KILOSHARD_POSTGRES_DSN names.`,
		RunE: needsCommand,
	}
	cmd.AddCommand(
		a.benchIDsCommand(), a.benchCreateCommand(), a.benchRouteCommand(), a.benchMigrateCommand(), a.benchMapCommand(), a.benchFailoverCommand(), a.benchMoveCommand(),
	)
	return cmd
}

// localConfig is how this program starts throw-away servers, as the environment says.
func localConfig() localpg.Config {
	return localpg.Config{
		DSN:   os.Getenv("KILOSHARD_POSTGRES_DSN"),
		Image: os.Getenv("KILOSHARD_POSTGRES_IMAGE"),
	}
}

// withServers runs fn with throw-away servers, and stops them.
func (a *app) withServers(ctx context.Context, n int, fn func([]*localpg.Server) error) error {
	return a.withServersOf(ctx, n, localConfig(), fn)
}

func (a *app) withServersOf(ctx context.Context, n int, cfg localpg.Config, fn func([]*localpg.Server) error) (err error) {
	var servers []*localpg.Server
	defer func() {
		for _, s := range servers {
			stopErr := s.Stop(context.WithoutCancel(ctx))
			if err == nil {
				err = stopErr
			}
		}
	}()
	for range n {
		s, err := localpg.Start(ctx, cfg)
		if err != nil {
			return err
		}
		servers = append(servers, s)
		fmt.Fprintln(a.stderr, "on", s.Describe())
	}
	return fn(servers)
}

// newHosts makes a new database on each of the servers at every call.
func newHosts(servers []*localpg.Server) func(context.Context) ([]shards.Host, error) {
	databases := 0
	return func(ctx context.Context) ([]shards.Host, error) {
		hosts := make([]shards.Host, len(servers))
		for i, s := range servers {
			databases++
			dsn, err := s.CreateDatabase(ctx, fmt.Sprintf("kiloshard_bench_%d_%d", os.Getpid(), databases))
			if err != nil {
				return nil, err
			}
			hosts[i] = shards.Host{Name: fmt.Sprintf("pg-%c", 'a'+i), DSN: dsn}
		}
		return hosts, nil
	}
}

// newStandby returns what starts a standby of a server.
func newStandby(server *localpg.Server) func(context.Context) (func(string) string, func() error, error) {
	return func(ctx context.Context) (func(string) string, func() error, error) {
		backup, err := server.Backup(ctx)
		if err != nil {
			return nil, nil, err
		}
		standby, err := backup.Standby(ctx, "kiloshard bench", nil)
		if err != nil {
			return nil, nil, errors.Join(err, backup.Remove(ctx))
		}
		return standby.DSN, func() error { return standby.Stop(context.WithoutCancel(ctx)) }, nil
	}
}

func (a *app) benchCreateCommand() *cobra.Command {
	var cfg bench.CreateConfig
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Creating shards on two hosts, beside a loop inside the servers",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Shards < 2 || cfg.Shards > shards.DefaultLayout.MaxShards() {
				return usagef("--shards %d: expected 2 to %d", cfg.Shards, shards.DefaultLayout.MaxShards())
			}
			return a.withServers(cmd.Context(), 2, func(servers []*localpg.Server) error {
				cfg.NewHosts = newHosts(servers)
				report, err := bench.Create(cmd.Context(), cfg)
				if err != nil {
					return err
				}
				return a.print(report, func() {
					rows := [][]string{{"WHAT", ">SECONDS", ">TIMES THE LOOP"}}
					rows = append(
						rows,
						[]string{"loop inside the servers", fmt.Sprintf("%.2f", report.Loop), "1.00"},
						[]string{"kiloshard create", fmt.Sprintf("%.2f", report.Ours), fmt.Sprintf("%.2f", report.VsLoop)},
						[]string{"a second create", fmt.Sprintf("%.2f", report.Again), ""},
						[]string{"kiloshard verify", fmt.Sprintf("%.2f", report.Verify), ""},
					)
					a.table(rows)
					a.say("%s on %s; medians of %d rounds, the ratio's too.", count(report.Shards, "shard"), count(report.Hosts, "host"), report.Rounds)
				})
			})
		},
	}
	cmd.Flags().IntVar(&cfg.Shards, "shards", 4096, "how many shards to create")
	return cmd
}

// plot draws a report into a directory, if there is one.
func (a *app) plot(dir string, report interface {
	Plot(dir string) ([]string, error)
},
) error {
	if dir == "" {
		return nil
	}
	made, err := report.Plot(dir)
	for _, path := range made {
		fmt.Fprintln(a.stderr, "wrote", path)
	}
	return err
}
