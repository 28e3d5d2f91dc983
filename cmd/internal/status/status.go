// Package status is kiloshard status, and its watch.
package status

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/migrations"
	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/migrate"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// statusResult is the JSON output of kiloshard status.
type statusResult struct {
	Cluster    string       `json:"cluster"`
	ShardCount int          `json:"shard_count"` // of the map
	Map        mapStatus    `json:"map"`
	Hosts      []hostStatus `json:"hosts"`

	Counters []counterStatus `json:"counters"` // of central generators
	Leads    []leadStatus    `json:"leads"`
	Moves    []moves.Row     `json:"moves"` // under way

	down []string // hosts that do not answer
}

// mapStatus is which map this is, and where it is kept.
type mapStatus struct {
	Store string `json:"store"`
	cli.MapVersion
}

// leadStatus is a sequence that leads the clock of its host.
type leadStatus struct {
	Host     string  `json:"host"`
	Schema   string  `json:"schema"`
	Sequence string  `json:"sequence"`
	Seconds  float64 `json:"seconds"`
}

type hostStatus struct {
	Host              string                  `json:"host"`
	Address           string                  `json:"address"`
	Up                bool                    `json:"up"`
	Error             string                  `json:"error,omitempty"`
	Postgres          string                  `json:"postgres"`
	ShardCount        int                     `json:"shard_count"` // that are there
	Expected          int                     `json:"expected"`
	Missing           shards.Set              `json:"missing"`
	Strays            shards.Set              `json:"strays"` // whose home is another host
	MissingExtensions []string                `json:"lacking_extensions,omitempty"`
	Versions          []migrate.VersionStatus `json:"versions"`
	Bytes             int64                   `json:"bytes"`
	Replicas          int                     `json:"replicas"`
	LagSeconds        float64                 `json:"lag_seconds"`
	Recovery          bool                    `json:"recovery,omitempty"`

	Addresses   []addressStatus   `json:"addresses,omitempty"`    // of a host with several
	MapReplicas []addressStatus   `json:"map_replicas,omitempty"` // without those at these addresses
	Rivals      []provision.Rival `json:"rivals,omitempty"`
	Standbys    []standbyStatus   `json:"standbys,omitempty"`
	Sessions    int               `json:"sessions"`

	transactions int64
	state        string // of one of which nothing is known, for people: "down", or why it refuses
}

// Command is kiloshard status.
func Command(a *cli.App) *cobra.Command {
	var timeout, every time.Duration
	var watch bool
	var looks int
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Prints hosts, shards, versions, sizes, lag",
		Long: `Prints the version of the map, who changed it last and when, and where it is kept. For each host it prints
whether it answers, how many of its shards exist and at which versions, its size, and the largest replay lag
of its replicas; below that, which address of a host with several is the primary, the replicas in the map, and
the standbys that stream from each host. A host that is an unpromoted standby is shown as one: it takes no
writes. A standby on another timeline than the primary is shown with it, and a host with two primaries is named.

It lists moves under way and names those without a mover, and sequences that lead the clock because it stepped
back. Exit code 3 when some hosts do not answer, or when no host serves a shard because its mover was killed;
1 when no host answers.

With --watch it repeats until Ctrl-C and shows what changes: hosts that go down and come back, how fast they
grow, how much they do. On a terminal it stays in place; otherwise it prints each look below the one before, as
JSON in one line each. The exit code is then 0, whatever the state of the hosts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !watch && (cmd.Flags().Changed("every") || cmd.Flags().Changed("looks")):
				return cli.Usagef("--every and --looks: expected --watch with them")
			case every <= 0:
				return cli.Usagef("--every %s: expected more than 0", every)
			case timeout <= 0:
				return cli.Usagef("--timeout %s: expected more than 0", timeout)
			case looks < 0:
				return cli.Usagef("--looks %d: expected 0 or more", looks)
			}
			if watch {
				if !cmd.Flags().Changed("timeout") {
					timeout = max(every, time.Second) // a host that hangs is not to hold up the others for long
				}
				return watchStatus(cmd.Context(), a, every, looks, func(ctx context.Context) (statusResult, error) { return lookAtHosts(ctx, a, timeout) })
			}
			result, err := lookAtHosts(cmd.Context(), a, timeout)
			if err != nil {
				return err
			}
			err = a.Print(result, func() {
				a.Say("map of %s: %s, in %s", result.Cluster, result.Map.MapVersion, result.Map.Store)
				a.Say("")
				a.Table(statusRows(result))
				tableOf(a, addressRows(result.Hosts))
				tableOf(a, standbyRows(result.Hosts))
				tableOf(a, moves.RowsOf(result.Moves))
				if len(result.Counters) > 0 {
					a.Say("")
					a.Table(counterRows(result.Counters))
				}
			})
			if err != nil {
				return err
			}
			var failed []string
			for _, h := range result.Hosts {
				if h.Error != "" {
					failed = append(failed, fmt.Sprintf("host %s: %s", h.Host, h.Error))
				}
			}
			for _, text := range cli.GroupHosts(failed) {
				fmt.Fprintln(a.Stderr, text)
			}
			for _, h := range result.Hosts {
				if n := h.Missing.Len(); n > 0 && !h.fencedOnly(result.Moves) {
					fmt.Fprintf(a.Stderr, "host %s is without %s (%s): see kiloshard verify\n", h.Host, cli.Count(n, "shard"), h.Missing)
				}
				if n := h.Strays.Len(); n > 0 {
					fmt.Fprintf(a.Stderr, "host %s has %s whose home is another host (%s): see kiloshard verify\n", h.Host, cli.Count(n, "shard"), h.Strays)
				}
				if len(h.MissingExtensions) > 0 {
					fmt.Fprintf(a.Stderr, "host %s is without %s (%s): run kiloshard create\n", h.Host, cli.Count(len(h.MissingExtensions), "extension"), strings.Join(h.MissingExtensions, ", "))
				}
				if h.Recovery {
					fmt.Fprintf(a.Stderr, "host %s takes no writes: it is a standby that was not promoted\n", h.Host)
				}
				warnOfServers(a, &h)
			}
			warnOfLeads(a, result.Leads)
			unserved := moves.Warn(a, result.Moves)
			switch {
			case len(result.down) == len(result.Hosts):
				return cli.ErrSilent
			case len(result.down) > 0 || unserved:
				return cli.Partly(cli.ErrSilent)
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Second, "how long to wait for the hosts")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "look again and again")
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "with --watch: how often")
	cmd.Flags().IntVar(&looks, "looks", 0, "with --watch: how many times; 0 for no end")
	return cmd
}

// lookAtHosts asks all hosts of the map how they are.
func lookAtHosts(ctx context.Context, a *cli.App, timeout time.Duration) (statusResult, error) {
	cfg, entry, err := a.LoadEntry(ctx)
	if err != nil {
		return statusResult{}, err
	}
	m := entry.Map
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := statusResult{Cluster: cfg.Cluster, ShardCount: m.Len(), Map: mapStatus{Store: a.Where(cfg.Store), MapVersion: cli.VersionOf(entry)}, Leads: []leadStatus{}}
	var counting sync.WaitGroup // beside the rest, which may wait for a host that hangs
	counting.Go(func() { result.Counters = counters(ctx, m) })
	counting.Go(func() { result.Moves = moves.UnderWay(ctx, m) })
	for _, s := range provision.Status(ctx, m) {
		h := hostStatus{
			Host: s.Host.Name, Address: s.Host.Address(), Up: s.Err == nil, Postgres: s.Version, ShardCount: s.Shards, Expected: s.Expected,
			Missing: s.Missing, Strays: s.Strays, MissingExtensions: s.MissingExtensions,
			Versions: []migrate.VersionStatus{}, Bytes: s.Bytes, Replicas: s.Replicas, LagSeconds: s.Lag.Seconds(),
			Sessions: s.Sessions, transactions: s.Transactions,
			Recovery: s.Recovery, Addresses: addressesOf(s.Addresses, roleOldPrimary), MapReplicas: addressesOf(s.MapReplicas, rolePromoted),
			Rivals: s.Rivals, Standbys: standbysOf(&s),
		}
		for _, l := range s.Leads {
			result.Leads = append(result.Leads, leadStatus{s.Host.Name, l.Schema, l.Sequence, l.By.Seconds()})
		}
		if s.Err != nil {
			h.Error, h.state = s.Err.Error(), cli.MissingHost(s.Err, "down")
			result.down = append(result.down, h.Host)
		}
		result.Hosts = append(result.Hosts, h)
	}
	addVersions(ctx, a, cfg, m, result.Hosts)
	counting.Wait()
	for i := range result.Hosts {
		result.Hosts[i].withoutMoves(result.Moves)
	}
	return result, nil
}

// addVersions adds the versions of the shards. What is pending is known only where the config names a directory of migrations.
func addVersions(ctx context.Context, a *cli.App, config shards.Config, m *shards.Map, hosts []hostStatus) {
	cfg, err := migrations.ConfigOf(a, config, m, "")
	if err != nil {
		cfg = migrate.Config{Map: m}
	}
	report, _ := migrate.Status(ctx, cfg) // what it holds is right also with an error
	for _, versions := range report.Hosts {
		for i := range hosts {
			if hosts[i].Host != versions.Host {
				continue
			}
			hosts[i].Versions = append(hosts[i].Versions, versions.Versions...)
		}
	}
}

// leadsShown is how many sequences that lead the clock are named; JSON has all.
const leadsShown = 10

// warnOfLeads names the sequences that lead the clock.
func warnOfLeads(a *cli.App, leads []leadStatus) {
	for _, l := range leads[:min(len(leads), leadsShown)] {
		fmt.Fprintf(a.Stderr, "sequence %s.%s on %s leads the clock by %s: should %s fail over and lose WAL, run kiloshard id advance there\n",
			l.Schema, l.Sequence, l.Host, time.Duration(l.Seconds*float64(time.Second)).Round(time.Millisecond), l.Host)
	}
	if more := len(leads) - leadsShown; more > 0 {
		fmt.Fprintf(a.Stderr, "and %s more\n", cli.Count(more, "sequence"))
	}
}

func statusRows(result statusResult) [][]string {
	rows := [][]string{{"HOST", "~ADDRESS", "!STATE", "PG", ">SHARDS", "VERSIONS", ">SIZE", ">REPLICAS", ">LAG"}}
	for _, h := range result.Hosts {
		if !h.Up {
			rows = append(rows, []string{h.Host, h.Address, h.state, "?", fmt.Sprintf("?/%d", h.Expected), "?", "?", "?", "?"})
			continue
		}
		state := "up"
		if h.Recovery {
			state = "standby"
		}
		lag := "-"
		if h.Replicas > 0 {
			lag = time.Duration(h.LagSeconds * float64(time.Second)).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{
			h.Host, h.Address, state, h.Postgres, fmt.Sprintf("%d/%d", h.ShardCount, h.Expected), versionRange(&h),
			cli.Megabytes(h.Bytes), fmt.Sprint(h.Replicas), lag,
		})
	}
	return rows
}

// versionRange returns the versions of a host's shards, from the first to the last.
func versionRange(h *hostStatus) string {
	n := len(h.Versions)
	switch n {
	case 0:
		return "-"
	case 1:
		return fmt.Sprint(h.Versions[0].Version)
	}
	return fmt.Sprintf("%d–%d", h.Versions[0].Version, h.Versions[n-1].Version)
}
