package move

import (
	"context"
	"errors"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/cleanup"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// CleanReport is what [Clean] has done.
type CleanReport struct {
	Done    shards.Set // whose old schemas are dropped
	Open    shards.Set // whose way back is open, so that their old schemas are kept
	Removed []string   // what no move needed any more, such as "pg-a: slot kiloshard_move_00007_1a2b3c4d"
	Unknown []string   // what is named like that, and is in no ledger: it is left alone
}

// Clean drops the old schemas of moves that have ended, and the fences in their place; with only, of those shards alone. A client that still
// uses the old host then reads "does not exist". It keeps the old schema of a way back that is open, unless only names the shard: then it closes the way
// back. It removes what else moves have left behind if all hosts of the map answer, since any of them may have the ledger of a move that needs
// it.
func Clean(ctx context.Context, m *shards.Map, only shards.Set) (CleanReport, error) {
	conns := hosts.New(m)
	defer conns.Close(ctx)
	var c CleanReport
	var done, open []shards.Number
	moves, statusErr := Status(ctx, m)
	errs := []error{statusErr}
	for _, old := range moves {
		if old.Outcome != ledger.Moved || only.Len() > 0 && !only.Has(old.Shard) {
			continue
		}
		switch kept, err := cleanup.Clean(ctx, conns, old, only.Len() > 0); {
		case err != nil:
			errs = append(errs, &shards.ShardError{Shard: old.Shard, Schema: old.OldSchema(), Host: old.Source, Err: err})
		case kept:
			open = append(open, old.Shard)
		default:
			done = append(done, old.Shard)
		}
	}
	c.Done, c.Open = shards.SetOf(done...), shards.SetOf(open...)
	if statusErr == nil {
		swept, err := cleanup.Sweep(ctx, m, conns)
		c.Removed, c.Unknown, errs = swept.Removed, swept.Unknown, append(errs, err)
	}
	return c, errors.Join(errs...)
}
