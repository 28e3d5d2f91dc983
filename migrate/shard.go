package migrate

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
)

// maxTurns is the number of attempts for a shard whose version another program keeps changing.
const maxTurns = 10

// shard takes one shard to the target. It returns the version that the shard has then, as far as the server confirmed it,
// and, with an error, the file that failed, if any.
func (r *run) shard(ctx context.Context, s *session.Session, n shards.Number, at shardVersion) (shardVersion, *files.File, error) {
	if at.fresh() && r.snapshot != nil && r.makeFromSnapshot(ctx, s, n) {
		r.steps.add(n, 0, r.target)
		return shardVersion{version: r.target, table: true}, nil, nil
	}
	for turns := 0; turns < maxTurns; {
		pending, err := r.directory.Pending(n, at.version, r.target, r.way)
		if err != nil || len(pending) == 0 {
			return at, nil, err
		}
		for _, f := range pending {
			if err := f.Check(); err != nil {
				return at, nil, err
			}
		}
		done, moved, err := r.apply(ctx, s, n, at, pending)
		if done > 0 {
			to := shardVersion{version: pending[done-1].After, table: true}
			r.steps.add(n, at.version, to.version)
			at = to
		}
		if err != nil {
			return at, &pending[min(done, len(pending)-1)], err
		}
		if !moved {
			return at, nil, nil
		}
		before := at.version
		if at, err = r.look(ctx, s, n); err != nil {
			return at, nil, err
		}
		if at.version != before { // else another session had the shard's lock
			turns++
		}
	}
	return at, nil, fmt.Errorf("another program changed its version %d times", maxTurns)
}

// enterFailure records a failed file in the ledger, if nobody has locked that for long. It ignores errors, since the shard's
// own error is reported anyway.
func (r *run) enterFailure(ctx context.Context, s *session.Session, n shards.Number, at shardVersion, f files.File, err error) {
	if s.Conn.IsClosed() {
		return
	}
	_, _ = s.Conn.Exec(ctx, "select set_config('lock_timeout', '1s', true); "+r.shape(n, at).Entry(f).Failure(err)).ReadAll()
}

// look reads the version of one shard.
func (r *run) look(ctx context.Context, s *session.Session, n shards.Number) (shardVersion, error) {
	found, err := shardVersions(ctx, s, r.cfg.Map, []shards.Number{n})
	if err != nil {
		return shardVersion{}, err
	}
	return found[n], found[n].trouble(r.newest())
}
