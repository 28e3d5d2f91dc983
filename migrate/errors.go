package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
	"github.com/kiloshard/kiloshard/migrate/internal/ledger"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/migrate/internal/turn"
	"github.com/kiloshard/kiloshard/shards"
)

var (
	// ErrNothingRun is among the causes if a run ended before any file ran on any host.
	ErrNothingRun = errors.New("nothing was run")

	// ErrNotCreated says that a shard's schema does not exist on its host.
	ErrNotCreated = errors.New("the schema does not exist: run kiloshard create")

	// ErrAhead says that a shard's version is above the newest file's.
	ErrAhead = errors.New("its version is above the newest file's")

	// ErrTernAtWork says that a tern program, or another session with tern's lock, did not release the lock in time.
	ErrTernAtWork = session.ErrTernAtWork

	// ErrTransactionEnded says that a file ended its own transaction. What it did up to there is committed, but the shard's
	// version does not include it.
	ErrTransactionEnded = script.ErrTransactionEnded

	// ErrLeftShard says that a file changed something outside the shard that it ran in, such as a table of schema public or a
	// role. The file is rolled back there. The run starts no other shard, since the file does the same in each.
	ErrLeftShard = script.ErrLeftShard

	// ErrMoving says that shards are being moved to another host. They are not attempted; run again after the move.
	ErrMoving = session.ErrMoving

	// ErrNoLedger says that the ledger of a host cannot be made or written.
	ErrNoLedger = ledger.ErrNoLedger

	// ErrLockLost says that a shard's lock was lost while a session worked on the shard.
	ErrLockLost = turn.ErrLost

	// ErrNoFile says that no file has a version.
	ErrNoFile = errors.New("no such migration")

	// ErrNotFlushed says that a shard was migrated, but its server did not confirm that this is on disk. After a crash of
	// the server the shard may be at an earlier version.
	ErrNotFlushed = errors.New("migrated, but the server did not confirm that it is on disk")
)

// FileError is the error of one migration file, by itself or in one shard.
type FileError = fileerror.Error

// refusal is the error of a run that ended before any file ran.
func refusal(set shards.Set, failed []*shards.ShardError, causes ...error) *shards.PartialError {
	return &shards.PartialError{
		Failed:       sortShards(failed),
		NotAttempted: without(set, numbersOf(failed)),
		Causes:       append([]error{ErrNothingRun}, causes...),
	}
}

func sortShards(failed []*shards.ShardError) []*shards.ShardError {
	slices.SortFunc(failed, func(a, b *shards.ShardError) int { return int(a.Shard) - int(b.Shard) })
	return failed
}

func numbersOf(failed []*shards.ShardError) shards.Set {
	numbers := make([]shards.Number, len(failed))
	for i, f := range failed {
		numbers[i] = f.Shard
	}
	return shards.SetOf(numbers...)
}

// without returns the shards of set that are not in other.
func without(set, other shards.Set) shards.Set {
	var left []shards.Number
	for n := range set.All() {
		if !other.Has(n) {
			left = append(left, n)
		}
	}
	return shards.SetOf(left...)
}

// movingError is the error of shards that a run skips because they are being moved.
func movingError(moving shards.Set) error {
	return fmt.Errorf("shards %s: %w", moving, ErrMoving)
}

// interruptedOr returns the cause of ctx's end, with the tern programs that the run waited for, or the given causes if ctx
// has not ended.
func interruptedOr(ctx context.Context, causes []error) []error {
	if ctx.Err() == nil {
		return causes
	}
	interrupt := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		interrupt = fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	causes = slices.DeleteFunc(causes, func(err error) bool { return !errors.Is(err, ErrTernAtWork) })
	return append([]error{interrupt}, causes...)
}
