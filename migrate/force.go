package migrate

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Force sets the version of the shards in Config.Shards, which must be given, without running anything: after somebody
// has done by hand what a file would have done, or undone it. Version 0 stands for nothing at all.
//
// It waits for tern programs and for other runs as [Up] does, and each shard is set in a transaction with its lock
// held. It is entered into the ledger, with the direction "force", also where the shard stood there already. The entries
// above the version are no longer current, and a file marked "tern: disable-tx" that was begun in a shard starts
// again there. Also a shard that stands above the newest file can be set.
//
// An error that is no [shards.PartialError] is about the config or the version, and no host was asked.
func Force(ctx context.Context, cfg Config, version int32) (Report, error) {
	if cfg.Shards.Len() == 0 {
		return Report{}, errors.New("migrate: Config.Shards is empty: expected the shards whose version is to be set")
	}
	return do(ctx, cfg, force, func(newest int32) (int32, error) {
		if version < 0 || version > newest {
			return 0, fmt.Errorf("version %d: expected 0, or that of a file, 1 to %d", version, newest)
		}
		return version, nil
	})
}

// forced returns what is run to set a version by hand: nothing, in the name of the version's file.
func (d *directory) forced(version int32) file {
	f := file{number: version, after: version, direction: force, sure: true}
	if version > 0 {
		f.name, f.checksum = d.names[version-1], d.checksums[version-1]
	}
	return f
}

// newest returns the highest version at which a shard may stand.
func (r *run) newest() int32 {
	if r.way == force {
		return math.MaxInt32
	}
	return r.directory.newest()
}
