package ids

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// farAhead is how far ahead of now sequences are moved without --yes: IDs follow the clock again only after that time.
const farAhead = 24 * time.Hour

// advanceResult is the JSON output of kiloshard id advance.
type advanceResult struct {
	Host         string               `json:"host"`
	Beyond       time.Time            `json:"beyond"`
	ShardCount   int                  `json:"shard_count"` // on the host
	Advanced     []provision.Advanced `json:"advanced"`
	Failed       []cli.FailedShard    `json:"failed"`
	NotAttempted shards.Set           `json:"not_attempted"`
}

func advanceCommand(a *cli.App) *cobra.Command {
	var beyond string
	var yes bool
	cfg := provision.AdvanceConfig{}
	cmd := &cobra.Command{
		Use:   "advance --host H --beyond TIME",
		Short: "Moves the sequences of a host's shards beyond a time, never back",
		Long: `Moves the sequences that make IDs, in all shards of a host, beyond a time: every ID from then on has a later
millisecond. Sequences that are already beyond it stay.

Use it for a host that lost WAL, by an asynchronous failover or a restore, while sequences led its clock;
kiloshard status, kiloshard verify and a metric name them. The new primary could make IDs again that the old
one gave. Pass the highest time that the clock showed before the failover, and run this before you let
writers in. Until the clock has caught up, a session makes one ID a millisecond.

Each shard is a transaction that waits for those that use its sequences. Exit code 3 when some shards are not
done; run it again.`,
		Example: `  kiloshard id advance --host pg-a --beyond 2026-03-01T13:05:00Z`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := time.Parse(time.RFC3339Nano, beyond)
			if err != nil {
				return cli.Usagef("--beyond %q: expected a time such as 2026-03-01T13:05:00Z", beyond)
			}
			if until := time.Until(at); until > farAhead && !yes {
				return cli.Usagef("--beyond %s: %s ahead of now; until then IDs do not follow the clock. Expected --yes if this is meant", beyond, until.Round(time.Minute))
			}
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			host, err := checkAdvance(m, cfg.Host, at)
			if err != nil {
				return err
			}
			a.Audit(cmd.Context(), []shards.Host{host}, nil)
			cfg.Map, cfg.Beyond, cfg.Progress = m, at, a.Progress("advance")
			moved, err := provision.Advance(cmd.Context(), cfg)
			return errors.Join(printAdvanced(a, cfg, moved, err), err)
		},
	}
	cmd.Flags().StringVar(&cfg.Host, "host", "", "the host whose shards they are")
	cmd.Flags().StringVar(&beyond, "beyond", "", "the time that all further IDs lie beyond, such as 2026-03-01T13:05:00Z")
	cmd.Flags().DurationVar(&cfg.LockWait, "lock-wait", 2*time.Second, "how long a shard's writers may have to wait for it")
	cmd.Flags().BoolVar(&yes, "yes", false, "also to a time that is more than a day ahead")
	_ = cmd.MarkFlagRequired("host") // these fail only for a flag that is not there
	_ = cmd.MarkFlagRequired("beyond")
	return cmd
}

// checkAdvance returns the host, and a usage error for a host or a time that the map does not have.
func checkAdvance(m *shards.Map, name string, at time.Time) (shards.Host, error) {
	if !m.Layout().HasTime() {
		return shards.Host{}, cli.Usagef("layout %s has no time: its sequences follow no clock", m.Layout())
	}
	if _, err := m.Layout().Milliseconds(at, m.Epoch()); err != nil {
		return shards.Host{}, cli.Usage(fmt.Errorf("--beyond: %w", err))
	}
	host, ok := m.HostNamed(name)
	if !ok {
		return shards.Host{}, cli.Usagef("--host %q: expected a host of the map", name)
	}
	return host, nil
}

func printAdvanced(a *cli.App, cfg provision.AdvanceConfig, moved []provision.Advanced, err error) error {
	result := advanceResult{Host: cfg.Host, Beyond: cfg.Beyond, ShardCount: len(cfg.Map.NumbersOn(cfg.Host)), Advanced: append([]provision.Advanced{}, moved...), Failed: []cli.FailedShard{}}
	var partial *shards.PartialError
	if errors.As(err, &partial) {
		result.Failed, result.NotAttempted = cli.Failures(partial), partial.NotAttempted
	}
	return a.Print(result, func() {
		if len(result.Advanced) > 0 {
			rows := [][]string{{">SHARD", "SEQUENCE", "WAS AT"}}
			for _, s := range result.Advanced {
				rows = append(rows, []string{fmt.Sprint(s.Shard), s.Schema + "." + s.Sequence, s.Was.UTC().Format("2006-01-02T15:04:05.000Z")})
			}
			a.Table(rows)
		}
		rest := "the others are beyond it"
		if partial != nil {
			rest = cli.Left(partial)
		}
		a.Say("%s moved beyond %s in %s on %s; %s", cli.Count(len(result.Advanced), "sequence"),
			cfg.Beyond.UTC().Format("2006-01-02T15:04:05.000Z"), cli.Count(result.ShardCount, "shard"), cfg.Host, rest)
		for _, f := range result.Failed {
			a.Say("shard %d: %s", f.Shard, f.Error)
		}
	})
}
