package provision

import (
	"context"

	"github.com/kiloshard/kiloshard/shards"
)

// UpgradeConfig says what [Upgrade] works on and how.
type UpgradeConfig struct {
	CreateConfig

	// Repair also puts back functions that somebody has changed since they were installed, as ALTER FUNCTION … IMMUTABLE
	// does: their bodies, their attributes, and whether PUBLIC may call them.
	Repair bool
}

// UpgradeReport says what [Upgrade] did, or would do.
type UpgradeReport struct {
	Helpers  []string   // hosts whose helper schema was brought to the present version
	Upgraded shards.Set // shards that were
	Current  shards.Set // shards that were there in the present version
	Missing  shards.Set // shards that are not there, or not whole: [Create] makes them
}

// Upgrade brings what an older release installed to the present version: the helper schemas, with ledger and central
// generators, and then the shards with their generators and directories, several at a time on each host. A shard goes from one version
// to the other in one transaction. IDs are made and migrations run meanwhile: no lock is waited for longer than a
// fifth of a second, so that sessions that queue behind Upgrade go on then, and Upgrade tries again, for half a minute.
//
// It makes nothing that is missing. Its errors, its locks and what happens when ctx ends are those of [Create]; another
// Upgrade goes on where one stopped. A dry run takes no lock and changes nothing.
func Upgrade(ctx context.Context, cfg UpgradeConfig) (UpgradeReport, error) {
	cfg.CreateConfig = cfg.withDefaults()
	sessions, w, err := cfg.begin(ctx, purpose{locks: !cfg.DryRun, repairs: cfg.Repair})
	if err != nil {
		return UpgradeReport{}, err
	}
	defer sessions.close(ctx)
	report := UpgradeReport{Helpers: w.helpers, Upgraded: shards.SetOf(w.old...), Current: shards.SetOf(w.current...), Missing: shards.SetOf(w.missing...)}
	if cfg.DryRun {
		return report, nil
	}
	if err := w.install(ctx, sessions); err != nil {
		return UpgradeReport{}, err
	}
	report.Upgraded, err = w.shards(ctx, cfg.CreateConfig, w.old)
	return report, err
}
