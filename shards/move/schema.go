package move

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/migrate/snapshot"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/structure"
	"github.com/kiloshard/kiloshard/shards/move/progress"
	"github.com/kiloshard/kiloshard/shards/provision"
)

// createWait is how long a move waits for a kiloshard create on its target.
const createWait = time.Minute

// StructureError says that the shard on the target differs from the source's.
type StructureError struct {
	Differences []string // "- …" for what only the source has, "+ …" for what only the target has
}

// Error names the first difference.
func (e *StructureError) Error() string {
	text := "the shard's structure on the target differs from the source's: " + e.Differences[0]
	if more := len(e.Differences) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more differences", more)
	}
	return text
}

// makeSchema makes the shard on the target as it is on the source, without rows, in place of what an earlier attempt has made.
func (j *job) makeSchema(ctx context.Context) error {
	if err := structure.DropTarget(ctx, j.to, j.Move); err != nil {
		return err
	}
	next, err := j.change().Next(j.cfg.Map)
	if err != nil {
		return err
	}
	// Nobody sees it but as a fence: what a session finds out about a schema it does not ask again.
	if err := provision.CreateOne(ctx, next, j.Shard, createWait, fence.Hide(j.Move)); err != nil {
		return err
	}
	if err := structure.AwaitForgotten(ctx, j.to, j.Move); err != nil {
		return err
	}
	if j.statements == (snapshot.Statements{}) {
		if err := j.readStatements(ctx); err != nil {
			return err
		}
	}
	script, err := structure.Script(ctx, j.from, j.Move, j.statements.Tables)
	if err != nil {
		return err
	}
	keys := j.statements.Keys
	if j.Offline { // which may copy the rows several times
		script, keys = script+keys, ""
	}
	if err := structure.Make(ctx, j.to, j.Move, script, keys); err != nil {
		return err
	}
	j.event(progress.Made)
	if err := j.carryRights(ctx); err != nil { // the default privileges of the target's database differ
		return err
	}
	return structure.CopyLedger(ctx, j.from, j.to, j.Shard)
}

// trySchema makes the shard on the target, and rolls that back.
func (j *job) trySchema(ctx context.Context) error {
	next, err := j.change().Next(j.cfg.Map)
	if err != nil {
		return err
	}
	script, err := structure.Script(ctx, j.from, j.Move, j.statements.Tables)
	if err != nil {
		return err
	}
	return provision.TryOne(ctx, next, j.Shard, createWait, script+j.statements.Keys)
}

// readStatements reads the statements that make the shard. The error is a [snapshot.UnknownError] for what no statement makes.
func (j *job) readStatements(ctx context.Context) (err error) {
	j.statements, err = structure.Read(ctx, j.src, j.cfg.Map, j.Shard)
	return err
}

// carryRights gives the shard on the target the owners and grants that it has on the source now, if they were changed there
// since it was made, or since it left a host that it returns to.
func (j *job) carryRights(ctx context.Context) error {
	hidden := j.back == nil // an old schema is not taken for the shard
	changed, err := structure.CarryRights(ctx, j.from, j.to, j.Move, j.copied(), hidden, j.cfg.LockTimeout)
	if changed {
		j.event(progress.Granted)
	}
	return err
}
