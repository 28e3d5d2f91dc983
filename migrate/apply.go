package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kiloshard/kiloshard/migrate/fileerror"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/migrate/internal/statements"
	"github.com/kiloshard/kiloshard/shards"
)

// apply runs files in one shard: in one round trip, unless one of them is to be run outside of a transaction, or the
// server refuses to read them as one text. It returns how many were committed, and whether the shard was at another version
// than expected, or locked by another session for a while.
func (r *run) apply(ctx context.Context, s *session.Session, n shards.Number, at shardVersion, pending []files.File) (done int, moved bool, err error) {
	switch alone := slices.IndexFunc(pending, func(f files.File) bool { return f.DisableTx }); {
	case alone == 0 && len(pending) == 1:
		return r.applyOutside(ctx, s, n, at, pending[0])
	case alone == 0:
		return r.applyInTurn(ctx, s, n, at, pending[:1], pending[1:])
	case alone > 0:
		return r.applyInTurn(ctx, s, n, at, pending[:alone], pending[alone:])
	}
	if len(pending) > 1 && !joinable(s, pending) {
		return r.applyInTurn(ctx, s, n, at, slices.Collect(slices.Chunk(pending, 1))...)
	}
	shape := r.shape(n, at)
	shape.EveryCatalog = !r.everyChecked(s.Host.Name, pending)
	text := script.New(shape, pending)
	out := text.Send(ctx, s)
	if len(pending) > 1 && out.Unread() {
		return r.applyInTurn(ctx, s, n, at, slices.Collect(slices.Chunk(pending, 1))...)
	}
	done, ended := out.Applied()
	r.haveChecked(s.Host.Name, pending[:done])
	if out.Err != nil || ended || s.Conn.TxStatus() != 'I' {
		s.Recover(ctx)
	}
	switch {
	case done == len(pending): // an error after its last commit does not concern the shard
		return done, false, nil
	case out.Moved() && !ended:
		return done, true, nil
	case out.Busy() && !ended:
		return done, true, r.turn(n).Await(ctx, s)
	}
	text.Hint(ctx, s, out)
	return done, false, text.Explain(out)
}

// applyInTurn runs groups of files in one shard, one after the other.
func (r *run) applyInTurn(ctx context.Context, s *session.Session, n shards.Number, at shardVersion, groups ...[]files.File) (done int, moved bool, err error) {
	for _, pending := range groups {
		some, moved, err := r.apply(ctx, s, n, at, pending)
		done += some
		if err != nil || moved {
			return done, moved, err
		}
		at = shardVersion{version: pending[len(pending)-1].After, table: true}
	}
	return done, false, nil
}

// joinable reports whether files can be sent as one text: none of them may swallow the next one, as an open quote does.
func joinable(s *session.Session, all []files.File) bool {
	return s.KnowsStrings() && !slices.ContainsFunc(all, func(f files.File) bool { return !f.Sure })
}

// applyOutside runs a file marked "tern: disable-tx" in one shard, statement by statement, from the first one that the
// ledger does not record as done. It returns the same as [run.apply].
//
// The session holds tern's lock too, shared. A tern program that waits for that lock holds a snapshot, and a CREATE INDEX
// CONCURRENTLY waits for the snapshot. If a tern program waits already, the file does not run. If one comes later,
// Postgres detects the deadlock and ends it.
func (r *run) applyOutside(ctx context.Context, s *session.Session, n shards.Number, at shardVersion, f files.File) (done int, moved bool, err error) {
	if !s.KnowsStrings() {
		return 0, false, &fileerror.Error{File: f.Name, Err: files.ErrEscapes}
	}
	if err := s.LockOutTern(ctx, r.cfg.TernWait); err != nil {
		return 0, false, fmt.Errorf("before migration %s: %w", f.Name, err)
	}
	defer s.Unlock(ctx)
	if moved, err := r.locked(ctx, s, n, at, f); moved || err != nil {
		return 0, moved, err
	}
	ended := f
	ended.SQL, ended.Statements, ended.DisableTx = "", nil, false
	return r.apply(ctx, s, n, at, []files.File{ended})
}

// locked runs a file's statements under the shard's lock. It returns moved, and runs nothing, if the shard is not at the
// version before the file. The caller sets the version afterwards.
func (r *run) locked(ctx context.Context, s *session.Session, n shards.Number, at shardVersion, f files.File) (moved bool, err error) {
	working, lock, err := r.turn(n).Take(ctx, r.sessions, s)
	if err != nil {
		return false, fmt.Errorf("before migration %s: %w", f.Name, err)
	}
	defer lock.Release(ctx)
	if moving, err := s.Moving(working); err != nil || moving.Has(n) {
		return false, fmt.Errorf("before migration %s: %w", f.Name, cmp.Or(err, ErrMoving))
	}
	now, err := r.look(working, s, n)
	if err != nil || now.version != at.version {
		return err == nil, err
	}
	work := statements.Run{
		Shape: r.shape(n, at), Logger: r.cfg.Logger,
		Resumed: func(statement int) {
			r.events.send(Event{Kind: FileResumed, Host: s.Host.Name, Shard: n, File: f.Name, Statement: statement})
		},
		Waits: func(blockers string) {
			r.events.send(Event{Kind: ShardWaits, Host: s.Host.Name, Shard: n, Blockers: blockers})
		},
	}
	if err := work.File(working, s, f); err != nil {
		if cause := context.Cause(working); errors.Is(cause, ErrLockLost) {
			return false, fmt.Errorf("%w: %w", err, cause)
		}
		return false, err
	}
	if _, err := s.Conn.Exec(working, session.Neutral+"; "+session.EndWhenIdle).ReadAll(); err != nil {
		return false, fmt.Errorf("after migration %s: %w", f.Name, err)
	}
	return false, nil
}
