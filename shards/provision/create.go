package provision

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// CreateConfig says what [Create] works on and how.
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

// CreateReport says what [Create] did.
type CreateReport struct {
	Created   shards.Set `json:"created"`
	Completed shards.Set `json:"completed"` // shards that existed without all that the map asks for, such as the tables of a directory
	Upgraded  shards.Set `json:"upgraded"`  // shards of an older version, now of the present one
	Existed   shards.Set `json:"existed"`   // shards that existed in the present version
	// Generators are those made in the helper schemas, with their hosts, such as "photo on tick-a".
	Generators []string `json:"generators"`
	Extensions []string `json:"extensions,omitempty"` // those made, with their hosts, such as "citext on pg-a"
	Copies     []Copies `json:"copies"`               // of shards that are on two hosts; Create does not change them
}

// Create creates every missing shard of the map on its host, each in one transaction, and upgrades shards of an older
// version, as [Upgrade] does. It holds a lock on each host meanwhile, and waits up to CreateConfig.Wait for another Create
// or Upgrade there; then it returns [ErrBusy], which names the other process. It changes nothing if
//   - a host does not answer ([shards.HostError]);
//   - two hosts are one database, or one is a standby of the other ([shards.FieldError]);
//   - a shard is on another host than the map says ([MisplacedError]);
//   - a shard is on no host although a ledger of migrations knows it ([LostError]);
//   - a schema has the name of a shard but was not made by Kiloshard ([ForeignError]);
//   - another role owns an object that Create would use, or added a trigger or the like to one (a [shards.HostError] around an [UntrustedError]);
//   - a host has an extension in another schema or version than the map says, or cannot have it (a [shards.HostError]);
//   - a generator's sequence makes other numbers than the map says ([ProgressionError]);
//   - a host holds shards of another cluster, epoch or layout (a [shards.HostError] around a [connect.IdentityError]).
//
// When ctx ends, Create finishes the batches in progress. If shards are still missing then, the error
// is a [shards.PartialError]; another Create continues where this one stopped.
func Create(ctx context.Context, cfg CreateConfig) (CreateReport, error) {
	cfg = cfg.withDefaults()
	sessions, w, err := cfg.begin(ctx, purpose{locks: !cfg.DryRun, makes: true})
	if err != nil {
		return CreateReport{}, err
	}
	defer sessions.close(ctx)
	if err := errors.Join(misplaced(w.m, w.inventories), foreign(w.m, w.inventories)); err != nil {
		return CreateReport{}, err
	}
	if err := sessions.refuseLost(ctx, cfg.Map, w.inventories, cfg.Empty); err != nil {
		return CreateReport{}, err
	}
	if err := sessions.checkExtensions(ctx, cfg.Map, w.inventories); err != nil {
		return CreateReport{}, err
	}
	if cfg.DryRun {
		return CreateReport{
			Created: shards.SetOf(w.missing...), Completed: shards.SetOf(w.incomplete...), Upgraded: shards.SetOf(w.old...), Existed: shards.SetOf(w.current...),
			Generators: w.generators, Extensions: extensionsOf(w.m, w.inventories), Copies: copies(w.m, w.inventories),
		}, nil
	}
	if err := w.install(ctx, sessions); err != nil {
		return CreateReport{}, err
	}
	report := CreateReport{Existed: shards.SetOf(w.current...), Generators: w.generators, Extensions: extensionsOf(w.m, w.inventories), Copies: copies(w.m, w.inventories)}
	done, err := w.shards(ctx, cfg, slices.Concat(w.missing, w.incomplete, w.old))
	report.Created, report.Completed, report.Upgraded = among(done, w.missing), among(done, w.incomplete), among(done, w.old)
	return report, err
}

// among returns the given shards that are in a set.
func among(set shards.Set, numbers []shards.Number) shards.Set {
	var in []shards.Number
	for _, n := range numbers {
		if set.Has(n) {
			in = append(in, n)
		}
	}
	return shards.SetOf(in...)
}
