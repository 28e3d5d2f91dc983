package provision

import (
	"context"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// UpgradeConfig configures [Upgrade].
type UpgradeConfig struct {
	CreateConfig

	// Repair also restores functions that were changed after their installation, such as by ALTER FUNCTION … IMMUTABLE:
	// their bodies, their attributes, and whether PUBLIC may call them.
	Repair bool
}

// UpgradeReport says what [Upgrade] did, or would do.
type UpgradeReport struct {
	Helpers    []string   `json:"helpers"`              // hosts whose helper schema was upgraded
	Extensions []string   `json:"extensions,omitempty"` // made, or to be made, such as "citext on pg-a"
	Upgraded   shards.Set `json:"upgraded"`             // shards that were upgraded
	Current    shards.Set `json:"current"`              // shards that had the present version
	Missing    shards.Set `json:"missing"`              // missing or incomplete shards: [Create] creates them
}

// Upgrade brings what an older release installed to the present version: the helper schemas, with ledger and central
// generators, and then the shards with their generators and directories, several at a time on each host. A shard goes from one version
// to the other in one transaction. Writers and migrations go on meanwhile: Upgrade waits for a lock at most a
// fifth of a second, so that sessions that queue behind it can continue, and retries for half a minute.
//
// It makes the map's extensions where they are missing, and no other missing objects. Errors, locks and the end of ctx are as in [Create]; another Upgrade continues where
// one stopped. A dry run takes no lock and changes nothing.
func Upgrade(ctx context.Context, cfg UpgradeConfig) (UpgradeReport, error) {
	cfg.CreateConfig = cfg.withDefaults()
	sessions, w, err := cfg.begin(ctx, purpose{locks: !cfg.DryRun, repairs: cfg.Repair})
	if err != nil {
		return UpgradeReport{}, err
	}
	defer sessions.close(ctx)
	if err := sessions.checkExtensions(ctx, cfg.Map, w.inventories); err != nil {
		return UpgradeReport{}, err
	}
	report := UpgradeReport{Extensions: extensionsOf(w.m, w.inventories), Helpers: w.helpers, Upgraded: shards.SetOf(w.old...), Current: shards.SetOf(w.current...), Missing: shards.SetOf(slices.Concat(w.missing, w.incomplete)...)}
	if cfg.DryRun {
		return report, nil
	}
	if err := w.install(ctx, sessions); err != nil {
		return UpgradeReport{}, err
	}
	report.Upgraded, err = w.shards(ctx, cfg.CreateConfig, w.old)
	return report, err
}
