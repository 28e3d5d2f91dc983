package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// statusResult is what kiloshard status prints as JSON.
type statusResult struct {
	Cluster string       `json:"cluster"`
	Shards  int          `json:"shards"`
	Hosts   []hostStatus `json:"hosts"`

	Counters []counterStatus `json:"counters"` // of central generators
}

type hostStatus struct {
	Host       string      `json:"host"`
	Address    string      `json:"address"`
	Up         bool        `json:"up"`
	Error      string      `json:"error,omitempty"`
	Postgres   string      `json:"postgres"`
	Shards     int         `json:"shards"`
	Expected   int         `json:"expected"`
	Versions   []atVersion `json:"versions"`
	Bytes      int64       `json:"bytes"`
	Replicas   int         `json:"replicas"`
	LagSeconds float64     `json:"lag_seconds"`
}

func (a *app) statusCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Prints hosts, shards, versions, sizes, lag",
		Long: `Prints for each host whether it answers, how many of its shards are there, at which
versions they stand, its size, and the largest replay lag of its replicas. Exit code 3
when some hosts do not answer, 1 when none does.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, m, err := a.loadMap()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			result := statusResult{Cluster: cfg.Cluster, Shards: m.Len()}
			var counting sync.WaitGroup // beside the rest, which may wait for a host that hangs
			counting.Go(func() { result.Counters = counters(ctx, m) })
			var down []string
			for _, s := range provision.Status(ctx, m) {
				h := hostStatus{
					Host: s.Host.Name, Address: s.Host.Address(), Up: s.Err == nil, Postgres: s.Version, Shards: s.Shards, Expected: s.Expected,
					Versions: []atVersion{}, Bytes: s.Bytes, Replicas: s.Replicas, LagSeconds: s.Lag.Seconds(),
				}
				if s.Err != nil {
					h.Error = s.Err.Error()
					down = append(down, h.Host)
				}
				result.Hosts = append(result.Hosts, h)
			}
			a.addVersions(ctx, result.Hosts)
			counting.Wait()
			err = a.print(result, func() {
				a.table(statusRows(result))
				if len(result.Counters) > 0 {
					a.say("")
					a.table(counterRows(result.Counters))
				}
			})
			if err != nil {
				return err
			}
			for _, h := range result.Hosts {
				if h.Error != "" {
					fmt.Fprintf(a.stderr, "host %s does not answer: %s\n", h.Host, h.Error)
				}
			}
			switch len(down) {
			case 0:
				return nil
			case len(result.Hosts):
				return errSilent
			}
			return partlyError{errSilent}
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long to wait for the hosts")
	return cmd
}

// addVersions adds the versions of the migrations, where there are migrations.
func (a *app) addVersions(ctx context.Context, hosts []hostStatus) {
	cfg, err := a.migrateConfig("")
	if err != nil {
		return // no migrations: no versions
	}
	report, _ := migrate.Status(ctx, cfg) // what it holds is right also with an error
	for _, versions := range report.Hosts {
		for i := range hosts {
			if hosts[i].Host != versions.Host {
				continue
			}
			for _, v := range versions.Versions {
				hosts[i].Versions = append(hosts[i].Versions, atVersion(v))
			}
		}
	}
}

func statusRows(result statusResult) [][]string {
	rows := [][]string{{"HOST", "ADDRESS", "STATE", "POSTGRES", ">SHARDS", "VERSIONS", ">SIZE", ">REPLICAS", ">LAG"}}
	for _, h := range result.Hosts {
		if !h.Up {
			rows = append(rows, []string{h.Host, h.Address, "down", "?", fmt.Sprintf("?/%d", h.Expected), "?", "?", "?", "?"})
			continue
		}
		versions := "-"
		if n := len(h.Versions); n > 0 {
			versions = fmt.Sprint(h.Versions[0].Version)
			if n > 1 {
				versions += fmt.Sprintf("–%d", h.Versions[n-1].Version)
			}
		}
		lag := "-"
		if h.Replicas > 0 {
			lag = time.Duration(h.LagSeconds * float64(time.Second)).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{
			h.Host, h.Address, "up", h.Postgres, fmt.Sprintf("%d/%d", h.Shards, h.Expected), versions,
			megabytes(h.Bytes), fmt.Sprint(h.Replicas), lag,
		})
	}
	return rows
}

func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
