package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/cmd/internal/moves"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/connect"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// verifyResult is the JSON output of kiloshard verify.
type verifyResult struct {
	ShardCount  int                `json:"shard_count"`
	HostCount   int                `json:"host_count"`
	Differences []verifyDifference `json:"differences"`
	Moving      shards.Set         `json:"moving"`    // whose moves are under way
	Unreached   []unreachedHost    `json:"unreached"` // of which nothing is known
	Rivals      []provision.Rival  `json:"rivals"`    // second primaries of hosts
}

type unreachedHost struct {
	Host  string `json:"host"`
	Error string `json:"error"`
}

// VerifyCommand is kiloshard verify.
func VerifyCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Compares all shards with the map and with each other",
		Long: `Compares every shard on every host with the map and names each difference: shards that are missing, misplaced
or on two hosts, functions with another shard number or epoch, sequences with a cache or a wrong maximum,
columns whose default calls another shard's next_id or draws from such a sequence, columns that get IDs and
cannot hold them, stray schemas, definitions of entities that differ. Then it
compares the shards at each version with each other, and reports each kind of difference once. A move under
way is not a difference, unless it stopped at the fence, where no host serves the shard. It changes nothing.
Exit code 1 when there is a difference or no host answers, 3 when the hosts that answer are as the map says, or
all are and one of them has two primaries: two addresses, or an address and a replica, that take writes.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, m, err := a.LoadMap(cmd.Context())
			if err != nil {
				return err
			}
			result := verifyResult{ShardCount: m.Len(), HostCount: len(m.Hosts()), Differences: []verifyDifference{}, Unreached: []unreachedHost{}, Rivals: []provision.Rival{}}
			if err := result.compare(cmd.Context(), m); err != nil {
				return err
			}
			if err := a.Print(result, func() { result.print(a, m) }); err != nil {
				return err
			}
			return result.verdict(a)
		},
	}
}

// compare compares the hosts that answer with the map, and the shards on them with each other. The error is one that leaves
// nothing to say of any host.
func (r *verifyResult) compare(ctx context.Context, m *shards.Map) error {
	rivals := make(chan []provision.Rival, 1)
	go func() { rivals <- provision.Rivals(ctx, m) }()
	differences, err := provision.Verify(ctx, m)
	r.Rivals = append(r.Rivals, <-rivals...)
	if err := r.note(ctx, err); err != nil {
		return err
	}
	for _, d := range differences {
		r.Differences = append(r.Differences, verifyDifference{Difference: d})
	}
	if len(r.Unreached) == len(m.Hosts()) {
		return nil
	}
	structures, err := structureDifferences(ctx, m, r.compared(m))
	if err := r.note(ctx, err); err != nil {
		return err
	}
	r.Differences = append(r.Differences, structures...)
	var moving []shards.Number
	for _, v := range moves.UnderWay(ctx, m) {
		moving = append(moving, v.Shard)
	}
	r.Moving = shards.SetOf(moving...)
	return nil
}

// note notes the hosts that an error names as not answering, each once. It returns an error of another kind, or that of ctx.
func (r *verifyResult) note(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	all := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		all = many.Unwrap()
	}
	for _, err := range all {
		var host *shards.HostError
		var identity *connect.IdentityError
		switch {
		case errors.As(err, &identity): // which is a difference already
		case !errors.As(err, &host):
			return err
		case !slices.ContainsFunc(r.Unreached, func(h unreachedHost) bool { return h.Host == host.Host }):
			r.Unreached = append(r.Unreached, unreachedHost{Host: host.Host, Error: host.Err.Error()})
		}
	}
	return nil
}

// compared returns the shards whose home answers.
func (r *verifyResult) compared(m *shards.Map) shards.Set {
	var numbers []shards.Number
	for _, h := range m.Hosts() {
		if !slices.ContainsFunc(r.Unreached, func(u unreachedHost) bool { return u.Host == h.Name }) {
			numbers = append(numbers, m.NumbersOn(h.Name)...)
		}
	}
	return shards.SetOf(numbers...)
}

func (r *verifyResult) print(a *cli.App, m *shards.Map) {
	if n := r.Moving.Len(); n > 0 {
		a.Say("%s under way, of shards %s: see kiloshard move status", cli.Count(n, "move"), r.Moving)
	}
	printDifferences(a, m, r.Differences)
	switch {
	case len(r.Unreached) > 0:
		a.Say("%s of %s compared, on %d of %s: %s", cli.Thousands(r.compared(m).Len()), cli.Count(m.Len(), "shard"),
			len(m.Hosts())-len(r.Unreached), cli.Count(len(m.Hosts()), "host"), cli.Count(len(r.Differences), "difference"))
	case len(r.Differences) == 0:
		a.Say("%s on %s: all as the map says", cli.Count(m.Len(), "shard"), cli.Count(len(m.Hosts()), "host"))
	default:
		a.Say("%s", cli.Count(len(r.Differences), "difference"))
	}
}

// verdict names the hosts that do not answer or have two primaries, and returns the error of the command.
func (r *verifyResult) verdict(a *cli.App) error {
	var texts []string
	for _, h := range r.Unreached {
		texts = append(texts, fmt.Sprintf("host %s: %s", h.Host, h.Error))
	}
	for _, text := range cli.GroupHosts(texts) {
		fmt.Fprintln(a.Stderr, text)
	}
	for _, rival := range r.Rivals {
		fmt.Fprintln(a.Stderr, rival)
	}
	switch {
	case len(r.Differences) == 0 && len(r.Unreached) == 0 && len(r.Rivals) == 0:
		return nil
	case len(r.Differences) == 0 && len(r.Unreached) < r.HostCount:
		return cli.Partly(cli.ErrSilent)
	}
	return cli.ErrSilent
}
