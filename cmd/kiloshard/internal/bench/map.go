package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/bench"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/kiloshard/internal/throwaway"
	"github.com/kiloshard/kiloshard/internal/localetcd"
	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

func mapCommand(a *cli.App) *cobra.Command {
	cfg := bench.MapConfig{Progress: func(what string) { fmt.Fprintln(a.Stderr, "measuring:", what) }}
	var kinds []string
	cmd := &cobra.Command{
		Use:   "map",
		Short: "The stores of the map: watchers, and stores that are killed",
		Long: `Measures the stores of the map, Postgres, etcd and a file, and checks what they promise
while they are killed with kill -9 and started again.

The parts, which --only selects, and what is wanted in each:

  watchers      1,000 watchers of one store, and of 50 with a connection each: how long
                after a change each of them has it; well below a second. Then the store is
                killed between changes: nobody misses one, or sees one go back
  linearizable  50 clients load and swap, 10,000 operations, while the store is killed
                at random: what they saw is linearizable, as porcupine checks it, each
                version has one winner, and the history agrees with what was acknowledged

A file has no server that could be killed. What does not hold is printed, and the exit code is 1.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOnly(cfg.Only, bench.MapParts()); err != nil {
				return err
			}
			for _, kind := range kinds {
				if !slices.Contains(mapStoreKinds, kind) {
					return cli.Usagef("--stores %s: expected some of %s", kind, strings.Join(mapStoreKinds, ","))
				}
			}
			for _, flag := range []struct {
				name         string
				value, least int
			}{
				{"watchers", cfg.Watchers, 1},
				{"connections", cfg.Connections, 1},
				{"changes", cfg.Changes, 1},
				{"clients", cfg.Clients, 1},
				{"operations", cfg.Operations, 1},
				{"kills", cfg.Kills, 0},
			} {
				if flag.value < flag.least {
					return cli.Usagef("--%s %d: expected %d or more", flag.name, flag.value, flag.least)
				}
			}
			if cfg.Kills == 0 {
				cfg.Kills = -1
			}
			return benchMap(cmd.Context(), a, cfg, kinds)
		},
	}
	onlyFlag(cmd, &cfg.Only, bench.MapParts())
	cmd.Flags().StringSliceVar(&kinds, "stores", mapStoreKinds, "the stores to measure")
	cmd.Flags().IntVar(&cfg.Watchers, "watchers", 1000, "of the part watchers")
	cmd.Flags().IntVar(&cfg.Connections, "connections", 50, "over which the watchers are spread the second time")
	cmd.Flags().IntVar(&cfg.Changes, "changes", 50, "that they watch")
	cmd.Flags().IntVar(&cfg.Clients, "clients", 50, "of the part linearizable, all at once")
	cmd.Flags().IntVar(&cfg.Operations, "operations", 10_000, "of all clients")
	cmd.Flags().IntVar(&cfg.Kills, "kills", 20, "of a store's server, in each part")
	return cmd
}

var mapStoreKinds = []string{shards.StorePostgres, shards.StoreEtcd, shards.StoreFile}

// benchMap runs the benchmark on throw-away servers.
func benchMap(ctx context.Context, a *cli.App, cfg bench.MapConfig, kinds []string) (err error) {
	servers := throwaway.LocalConfig()
	servers.Settings = map[string]string{"fsync": "on", "max_connections": "400"}
	postgres := 0
	if slices.Contains(kinds, shards.StorePostgres) {
		postgres = 1
	}
	return throwaway.WithServersOf(ctx, a, postgres, servers, func(servers []*localpg.Server) (err error) {
		var makers []func(context.Context, string) (bench.MapStore, error)
		for _, server := range servers {
			makers = append(makers, postgresStore(server))
		}
		if slices.Contains(kinds, shards.StoreEtcd) {
			server, err := startEtcd(ctx, a)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, server.Stop()) }()
			makers = append(makers, etcdStore(server))
		}
		if slices.Contains(kinds, shards.StoreFile) {
			dir, err := os.MkdirTemp("", "kiloshard-bench-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			makers = append(makers, fileStore(dir))
		}
		places := 0
		cfg.NewStores = func(ctx context.Context) ([]bench.MapStore, error) {
			places++
			var stores []bench.MapStore
			for _, maker := range makers {
				store, err := maker(ctx, fmt.Sprintf("bench%d", places))
				if err != nil {
					return nil, err
				}
				stores = append(stores, store)
			}
			return stores, nil
		}
		report, err := bench.Map(ctx, cfg)
		if err != nil {
			return err
		}
		if err := a.Print(report, func() { printMapReport(a, report) }); err != nil {
			return err
		}
		if len(report.Failed) > 0 {
			return fmt.Errorf("%s: %s", cli.Count(len(report.Failed), "failure"), report.Failed[0])
		}
		return nil
	})
}

func printMapReport(a *cli.App, report *bench.MapReport) {
	rows := [][]string{{"PART", "STORE", "WHAT", "METRIC", ">VALUE"}}
	for _, f := range report.Rows {
		value := f.Text
		if value == "" {
			value = figure(f.Value)
		}
		rows = append(rows, []string{f.Part, f.Store, f.What, f.Metric, value})
	}
	a.Table(rows)
	for _, server := range report.Servers {
		a.Say("On %s.", server)
	}
	for _, failed := range report.Failed {
		a.Say("FAILED: %s", failed)
	}
}

// startEtcd starts an etcd in a copy of this program.
func startEtcd(ctx context.Context, a *cli.App) (*localetcd.Server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server, err := localetcd.Start(ctx, localetcd.Config{Command: []string{program, etcdServerName}})
	if err == nil {
		fmt.Fprintln(a.Stderr, "on", server.Describe())
	}
	return server, err
}

const etcdServerName = "etcd-server"

// EtcdServerCommand is what the process of an etcd server runs.
func EtcdServerCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: etcdServerName, Short: "Runs the etcd of kiloshard bench map", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return localetcd.Serve(cmd.Context(), a.Stdin, a.Stdout)
		},
	}
}

func postgresStore(server *localpg.Server) func(context.Context, string) (bench.MapStore, error) {
	return func(ctx context.Context, name string) (bench.MapStore, error) {
		dsn, err := server.CreateDatabase(ctx, fmt.Sprintf("kiloshard_%s_%d", name, os.Getpid()))
		store := bench.MapStore{
			Kind: shards.StorePostgres, Server: server.Describe(),
			Config: shards.Config{Cluster: name, Store: shards.Store{Kind: shards.StorePostgres, DSN: dsn}},
		}
		if server.Source() != localpg.DSN { // else it is not ours to kill
			store.Kill, store.Restart = server.Kill, server.Restart
		}
		return store, err
	}
}

func etcdStore(server *localetcd.Server) func(context.Context, string) (bench.MapStore, error) {
	return func(_ context.Context, name string) (bench.MapStore, error) {
		return bench.MapStore{
			Kind: shards.StoreEtcd, Server: server.Describe(),
			Config: shards.Config{Cluster: name, Store: shards.Store{Kind: shards.StoreEtcd, Endpoints: []string{server.Endpoint()}}},
			Kill:   server.Kill, Restart: server.Restart,
		}, nil
	}
}

func fileStore(dir string) func(context.Context, string) (bench.MapStore, error) {
	return func(_ context.Context, name string) (bench.MapStore, error) {
		return bench.MapStore{
			Kind: shards.StoreFile, Server: "a file in " + os.TempDir(),
			Config: shards.Config{Cluster: name, Store: shards.Store{Kind: shards.StoreFile}}, Path: filepath.Join(dir, name+".yaml"),
		}, nil
	}
}
