package migrate

import (
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// pending returns the part of the plan with pending files, the shards without any, and the shards that are skipped because
// they are being moved.
func (r *run) pending(plan []fanout.Work) (work []fanout.Work, upToDate, moving shards.Set) {
	away := shards.SetOfRanges(r.moving...)
	var there, leaving []shards.Number
	for _, w := range plan {
		var left []shards.Number
		for _, n := range w.Shards {
			switch {
			case r.shardVersions[n].err != nil: // [ErrMoving]: its version is unknown
				leaving = append(leaving, n)
			case !r.pendingAt(r.shardVersions[n].version):
				there = append(there, n)
			case away.Has(n):
				leaving = append(leaving, n)
			default:
				left = append(left, n)
			}
		}
		if len(left) > 0 {
			work = append(work, fanout.Work{Host: w.Host, Shards: left})
		}
	}
	return work, shards.SetOf(there...), shards.SetOf(leaving...)
}

// checkFiles checks all files that any shard needs, rendered for a shard that needs all of them.
func (r *run) checkFiles(work []fanout.Work) error {
	farthest := work[0].Shards[0]
	for _, w := range work {
		for _, n := range w.Shards {
			if at, most := r.shardVersions[n].version, r.shardVersions[farthest].version; r.way == files.Up && at < most || r.way == files.Down && at > most {
				farthest = n
			}
		}
	}
	pending, err := r.directory.Pending(farthest, r.shardVersions[farthest].version, r.target, r.way)
	if err != nil {
		return err
	}
	for _, f := range pending {
		if err := f.Check(); err != nil {
			return err
		}
	}
	return nil
}

// replaced returns the errors that keep the run from starting: shards ran other files under the same numbers. [Force] runs
// no file, so it has none.
func (r *run) replaced() []error {
	if r.way == files.Force {
		return nil
	}
	return Replaced(r.changes)
}
