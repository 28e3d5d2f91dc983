package provision

import (
	"context"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/provision/internal/install"
)

// UpgradeConfig configures [Upgrade].
type UpgradeConfig struct {
	CreateConfig

	// Repair also restores functions that were changed after their installation, such as by ALTER FUNCTION … IMMUTABLE:
	// their bodies, their attributes, and whether PUBLIC may call them.
	Repair bool
}

// UpgradeReport is the result of [Upgrade].
type UpgradeReport struct {
	Helpers    []string   `json:"helpers"`              // hosts whose helper schema was upgraded
	Extensions []string   `json:"extensions,omitempty"` // those created, with their hosts, such as "citext on pg-a"
	Upgraded   shards.Set `json:"upgraded"`             // shards that were upgraded
	Current    shards.Set `json:"current"`              // shards that had the present version
	Missing    shards.Set `json:"missing"`              // missing or incomplete shards: [Create] creates them
}

// Upgrade upgrades objects that an older release installed: first the helper schemas, with ledger and central
// generators, and then the shards with their generators and directories, several at a time on each host. It upgrades a
// shard in one transaction. Writers and migrations continue: Upgrade waits for a lock at most a fifth of a second, so
// that sessions that queue behind it can continue, and retries for half a minute.
//
// It creates missing extensions of the map, and no other missing objects. Errors, locks and the end of ctx are as in
// [Create]; another Upgrade continues where one stopped. A dry run takes no lock, changes nothing, and reports what
// Upgrade would do.
func Upgrade(ctx context.Context, cfg UpgradeConfig) (UpgradeReport, error) {
	cfg.CreateConfig = cfg.withDefaults()
	op, err := cfg.begin(ctx, install.Options{Repair: cfg.Repair})
	if err != nil {
		return UpgradeReport{}, err
	}
	defer op.sessions.Close(ctx)
	if err := op.checkExtensions(ctx, cfg.Map); err != nil {
		return UpgradeReport{}, err
	}
	p := op.plan
	report := UpgradeReport{
		Helpers: p.Helpers, Extensions: p.Extensions,
		Upgraded: shards.SetOf(p.Old...), Current: shards.SetOf(p.Current...),
		Missing: shards.SetOf(slices.Concat(p.Missing, p.Incomplete)...),
	}
	if cfg.DryRun {
		return report, nil
	}
	if err := p.InstallHelpers(ctx, op.sessions); err != nil {
		return UpgradeReport{}, err
	}
	report.Upgraded, err = p.CreateShards(ctx, cfg.batches(), p.Old)
	return report, err
}
