package migrate

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/shards"
)

// maxTurns is how often a shard is tried whose version somebody else changes meanwhile.
const maxTurns = 10

// upShard takes one shard up to the target, from where it stood when the run began.
func (r *upRun) upShard(ctx context.Context, s *session, n shards.Number) error {
	at := r.standings[n]
	for range maxTurns {
		files, err := r.directory.pending(n, at.version, r.target)
		if err != nil || len(files) == 0 {
			return err
		}
		for _, f := range files {
			if err := f.check(); err != nil {
				return err
			}
		}
		done, moved, err := r.apply(ctx, s, n, at, files)
		r.steps.add(n, at.version, at.version+int32(done))
		if err != nil || !moved {
			return err
		}
		if at, err = r.look(ctx, s, n); err != nil {
			return err
		}
	}
	return fmt.Errorf("somebody else changed its version %d times meanwhile", maxTurns)
}

// apply runs files in one shard: in one round trip, unless the server refuses to read them as one
// text. It returns how many were committed, and whether the shard turned out not to stand where it
// was expected to.
func (r *upRun) apply(ctx context.Context, s *session, n shards.Number, at standing, files []file) (done int, moved bool, err error) {
	if len(files) > 1 && !s.joinable(files) {
		return r.applySingly(ctx, s, n, at, files)
	}
	text := newScript(r.shape(n, at), files)
	out := s.send(ctx, text.text)
	if len(files) > 1 && out.unread() {
		return r.applySingly(ctx, s, n, at, files)
	}
	done, ended := out.applied()
	if out.err != nil || ended || s.conn.TxStatus() != 'I' {
		s.recover(ctx)
	}
	switch {
	case done == len(files): // whatever went wrong behind its last commit is not the shard's
		return done, false, nil
	case out.moved() && !ended:
		return done, true, nil
	}
	return done, false, text.explain(out)
}

// applySingly runs files in one shard, each in a round trip of its own.
func (r *upRun) applySingly(ctx context.Context, s *session, n shards.Number, at standing, files []file) (done int, moved bool, err error) {
	for i := range files {
		one, moved, err := r.apply(ctx, s, n, at, files[i:i+1])
		if err != nil || moved {
			return done, moved, err
		}
		done += one
		at = standing{version: files[i].number, table: true}
	}
	return done, false, nil
}

// joinable tells whether files can be sent as one text: none of them may be such that the next one
// becomes a part of it, as after a quote that is never closed.
func (s *session) joinable(files []file) bool {
	if s.conn.ParameterStatus("standard_conforming_strings") != "on" {
		return false
	}
	for _, f := range files {
		if !f.sure {
			return false
		}
	}
	return true
}

// look asks where one shard stands.
func (r *upRun) look(ctx context.Context, s *session, n shards.Number) (standing, error) {
	found, err := s.standings(ctx, r.cfg.Map, []shards.Number{n})
	if err != nil {
		return standing{}, err
	}
	return found[n], found[n].trouble(r.directory.newest())
}

func (r *upRun) shape(n shards.Number, at standing) shape {
	return shape{
		shard: n, schema: r.cfg.Map.Schema(n), searchPath: r.cfg.Map.SearchPath(n),
		version: at.version, table: at.table, lockTimeout: r.cfg.LockTimeout,
	}
}
