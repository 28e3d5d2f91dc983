package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/shards"
)

// maxTurns is the number of attempts for a shard whose version another program keeps changing.
const maxTurns = 10

// shard takes one shard to the target. It returns the version that the shard has then, as far as the server confirmed it,
// and, with an error, the file that failed, if any.
func (r *run) shard(ctx context.Context, s *session, n shards.Number, at shardVersion) (shardVersion, *file, error) {
	if at.fresh() && r.snapshot != nil && r.makeFromSnapshot(ctx, s, n) {
		r.steps.add(n, 0, r.target)
		return shardVersion{version: r.target, table: true}, nil, nil
	}
	for turns := 0; turns < maxTurns; {
		files, err := r.directory.pending(n, at.version, r.target, r.way)
		if err != nil || len(files) == 0 {
			return at, nil, err
		}
		for _, f := range files {
			if err := f.check(); err != nil {
				return at, nil, err
			}
		}
		done, moved, err := r.apply(ctx, s, n, at, files)
		if done > 0 {
			to := shardVersion{version: files[done-1].after, table: true}
			r.steps.add(n, at.version, to.version)
			at = to
		}
		if err != nil {
			return at, &files[min(done, len(files)-1)], err
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
	return at, nil, fmt.Errorf("somebody else changed its version %d times meanwhile", maxTurns)
}

// apply runs files in one shard: in one round trip, unless one of them is to be run outside of a transaction, or the
// server refuses to read them as one text. It returns how many were committed, and whether the shard turned out not to
// stand where it was expected to, or to be in somebody else's hands for a while.
func (r *run) apply(ctx context.Context, s *session, n shards.Number, at shardVersion, files []file) (done int, moved bool, err error) {
	switch alone := slices.IndexFunc(files, func(f file) bool { return f.disableTx }); {
	case alone == 0 && len(files) == 1:
		return r.applyOutside(ctx, s, n, at, files[0])
	case alone == 0:
		return r.applyInTurn(ctx, s, n, at, files[:1], files[1:])
	case alone > 0:
		return r.applyInTurn(ctx, s, n, at, files[:alone], files[alone:])
	}
	if len(files) > 1 && !s.joinable(files) {
		return r.applyInTurn(ctx, s, n, at, slices.Collect(slices.Chunk(files, 1))...)
	}
	shape := r.shape(n, at)
	shape.everyCatalog = !r.everyChecked(s.host.Name, files)
	text := newScript(shape, files)
	out := s.send(ctx, text.text)
	if len(files) > 1 && out.unread() {
		return r.applyInTurn(ctx, s, n, at, slices.Collect(slices.Chunk(files, 1))...)
	}
	done, ended := out.applied()
	r.haveChecked(s.host.Name, files[:done])
	if out.err != nil || ended || s.conn.TxStatus() != 'I' {
		s.recover(ctx)
	}
	switch {
	case done == len(files): // an error after its last commit does not concern the shard
		return done, false, nil
	case out.moved() && !ended:
		return done, true, nil
	case out.busy() && !ended:
		return done, true, r.awaitShard(ctx, s, n)
	}
	s.hintOfExtension(ctx, text.text, out.err)
	return done, false, text.explain(out)
}

// applyInTurn runs groups of files in one shard, one after the other.
func (r *run) applyInTurn(ctx context.Context, s *session, n shards.Number, at shardVersion, groups ...[]file) (done int, moved bool, err error) {
	for _, files := range groups {
		some, moved, err := r.apply(ctx, s, n, at, files)
		done += some
		if err != nil || moved {
			return done, moved, err
		}
		at = shardVersion{version: files[len(files)-1].after, table: true}
	}
	return done, false, nil
}

// joinable reports whether files can be sent as one text: none of them may swallow the next one, as an open quote does.
func (s *session) joinable(files []file) bool {
	if !s.knowsStrings() {
		return false
	}
	for _, f := range files {
		if !f.sure {
			return false
		}
	}
	return true
}

// knowsStrings reports whether the server reads strings as [split] does.
func (s *session) knowsStrings() bool {
	return s.conn.ParameterStatus("standard_conforming_strings") == "on"
}

// look reads the version of one shard.
func (r *run) look(ctx context.Context, s *session, n shards.Number) (shardVersion, error) {
	found, err := s.shardVersions(ctx, r.cfg.Map, []shards.Number{n})
	if err != nil {
		return shardVersion{}, err
	}
	return found[n], found[n].trouble(r.newest())
}

func (r *run) shape(n shards.Number, at shardVersion) shape {
	return shape{
		run: r.id, who: r.cfg.By,
		shard: n, schema: r.cfg.Map.Schema(n), searchPath: r.cfg.Map.SearchPath(n),
		version: at.version, table: at.table, lockTimeout: r.cfg.LockTimeout, statementTimeout: r.cfg.StatementTimeout,
	}
}

// enterFailure records a failed file in the ledger, if nobody has locked that for long. It ignores errors, since the shard's
// own error is reported anyway.
func (r *run) enterFailure(ctx context.Context, s *session, n shards.Number, at shardVersion, f file, err error) {
	if s.conn.IsClosed() {
		return
	}
	_, _ = s.conn.Exec(ctx, "select set_config('lock_timeout', '1s', true); "+r.shape(n, at).entry(f).failure(err)).ReadAll()
}
