package provision

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
	"github.com/kiloshard/kiloshard/shards/provision/internal/batch"
	"github.com/kiloshard/kiloshard/shards/provision/internal/install"
)

// CreateConfig configures [Create].
type CreateConfig struct {
	Map      *shards.Map
	PerHost  int             // sessions on each host. Defaults to 2
	Batch    int             // shards per transaction. Defaults to 64
	Wait     time.Duration   // how long to wait for another Create or Upgrade. Defaults to 1 min
	Progress fanout.Progress // Defaults to none

	DryRun bool // only report what Create would do: no locks, no changes

	// Empty are shards to create again without rows, although a ledger lists them; see [LostError]. Defaults to none.
	Empty shards.Set
}

func (cfg CreateConfig) withDefaults() CreateConfig {
	cfg.Batch = cmp.Or(max(cfg.Batch, 0), 64)
	cfg.Wait = cmp.Or(max(cfg.Wait, 0), time.Minute)
	return cfg
}

func (cfg CreateConfig) batches() batch.Config {
	return batch.Config{PerHost: cfg.PerHost, Size: cfg.Batch, Progress: cfg.Progress}
}

// CreateReport is the result of [Create].
type CreateReport struct {
	Created   shards.Set `json:"created"`
	Completed shards.Set `json:"completed"` // shards that existed without some objects of the map, such as the tables of a directory
	Upgraded  shards.Set `json:"upgraded"`  // shards of an older version, now of the present one
	Existed   shards.Set `json:"existed"`   // shards that existed in the present version
	// Generators are those created in helper schemas, with their hosts, such as "photo on tick-a".
	Generators []string `json:"generators"`
	Extensions []string `json:"extensions,omitempty"` // those created, with their hosts, such as "citext on pg-a"
	Copies     []Copies `json:"copies"`               // of shards that are on two hosts; Create does not change them
}

// Create creates every missing shard of the map on its host, each in one transaction, and upgrades shards of an older
// version, as [Upgrade] does. While it works, it holds a lock on each host. It waits up to CreateConfig.Wait for
// another Create or Upgrade there; then it returns [ErrBusy], which names the other process. It changes nothing if
//   - a host does not answer ([shards.HostError]);
//   - two hosts are one database, or one is a standby of the other ([shards.FieldError]);
//   - a shard is on another host than the map says ([MisplacedError]);
//   - a shard is on no host although a ledger of migrations knows it ([LostError]);
//   - a schema has the name of a shard but was not made by Kiloshard ([ForeignError]);
//   - another role owns an object that Create would use, or added a trigger or the like to one
//     (a [shards.HostError] around an [UntrustedError]);
//   - a host has an extension in another schema or version than the map says, or cannot have it (a [shards.HostError]);
//   - a generator's sequence makes other numbers than the map says ([ProgressionError]);
//   - a host holds shards of another cluster, epoch or layout (a [shards.HostError] around a [connect.IdentityError]).
//
// When ctx ends, Create finishes the batches in progress. If shards are still missing then, the error
// is a [shards.PartialError]; another Create continues where this one stopped.
func Create(ctx context.Context, cfg CreateConfig) (CreateReport, error) {
	cfg = cfg.withDefaults()
	op, err := cfg.begin(ctx, install.Options{Missing: true})
	if err != nil {
		return CreateReport{}, err
	}
	defer op.sessions.Close(ctx)
	if err := errors.Join(checkPlacement(cfg.Map, op.hosts), checkForeign(cfg.Map, op.hosts)); err != nil {
		return CreateReport{}, err
	}
	if err := op.checkLost(ctx, cfg.Map, cfg.Empty); err != nil {
		return CreateReport{}, err
	}
	if err := op.checkExtensions(ctx, cfg.Map); err != nil {
		return CreateReport{}, err
	}
	p := op.plan
	report := CreateReport{
		Created: shards.SetOf(p.Missing...), Completed: shards.SetOf(p.Incomplete...),
		Upgraded: shards.SetOf(p.Old...), Existed: shards.SetOf(p.Current...),
		Generators: p.Generators, Extensions: p.Extensions, Copies: copies(cfg.Map, op.hosts),
	}
	if cfg.DryRun {
		return report, nil
	}
	if err := p.InstallHelpers(ctx, op.sessions); err != nil {
		return CreateReport{}, err
	}
	done, err := p.CreateShards(ctx, cfg.batches(), slices.Concat(p.Missing, p.Incomplete, p.Old))
	report.Created, report.Completed, report.Upgraded = within(done, p.Missing), within(done, p.Incomplete), within(done, p.Old)
	return report, err
}

// within returns the given shards that are in a set.
func within(set shards.Set, numbers []shards.Number) shards.Set {
	return shards.SetOf(slices.DeleteFunc(slices.Clone(numbers), func(n shards.Number) bool { return !set.Has(n) })...)
}
