package migrate

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Force sets the version of the shards in Config.Shards, which must not be empty, without running a file. Use it after
// you did the work of a file by hand, or undid it. Version 0 is the version before the first file.
//
// Force waits for tern programs and for other runs as [Up] does. It sets each shard in a transaction that holds the shard's
// lock, and records it in the ledger with the direction "force", even if the version does not change. Ledger entries
// above the version are no longer current, and a file marked "tern: disable-tx" that was begun in a shard starts
// again there. A shard above the newest file can be set too.
//
// An error that is not a [shards.PartialError] is about the config or the version; then no host was contacted.
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

// forced returns the file that sets a version by hand: no SQL, under the name of the version's file.
func (d *directory) forced(version int32) file {
	f := file{number: version, after: version, direction: force, sure: true}
	if version > 0 {
		f.name, f.checksum = d.names[version-1], d.checksums[version-1]
	}
	return f
}

// newest returns the highest version that a shard may have.
func (r *run) newest() int32 {
	if r.way == force {
		return math.MaxInt32
	}
	return r.directory.newest()
}
