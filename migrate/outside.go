package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

// applyOutside runs a file marked "tern: disable-tx" in one shard, statement by statement, from the first one that the
// ledger does not record as done. It returns the same as [run.apply].
//
// The session holds tern's lock too, shared. A tern program that waits for that lock holds a snapshot, and a CREATE INDEX
// CONCURRENTLY waits for the snapshot. If a tern program waits already, the file does not run. If one comes later,
// Postgres detects the deadlock and ends it.
func (r *run) applyOutside(ctx context.Context, s *session, n shards.Number, at shardVersion, f file) (done int, moved bool, err error) {
	if !s.knowsStrings() {
		return 0, false, &FileError{File: f.name, Err: errEscapes}
	}
	if err := s.lockOutTern(ctx, r.cfg.TernWait); err != nil {
		return 0, false, fmt.Errorf("before migration %s: %w", f.name, err)
	}
	defer s.unlock(ctx)
	if moved, err := r.locked(ctx, s, n, at, f); moved || err != nil {
		return 0, moved, err
	}
	ended := f
	ended.sql, ended.statements, ended.disableTx = "", nil, false
	return r.apply(ctx, s, n, at, []file{ended})
}

// locked runs a file's statements under the shard's lock. It returns moved, and runs nothing, if the shard is not at the
// version before the file. The caller sets the version afterwards.
func (r *run) locked(ctx context.Context, s *session, n shards.Number, at shardVersion, f file) (moved bool, err error) {
	working, lock, err := r.lockShard(ctx, s, n)
	if err != nil {
		return false, fmt.Errorf("before migration %s: %w", f.name, err)
	}
	defer lock.release(ctx, r)
	if moving, err := s.moving(working); err != nil || moving.Has(n) {
		return false, fmt.Errorf("before migration %s: %w", f.name, cmp.Or(err, ErrMoving))
	}
	now, err := r.look(working, s, n)
	if err != nil || now.version != at.version {
		return err == nil, err
	}
	if err := r.statements(working, s, n, at, f); err != nil {
		if cause := context.Cause(working); errors.Is(cause, ErrLockLost) {
			return false, fmt.Errorf("%w: %w", err, cause)
		}
		return false, err
	}
	if _, err := s.conn.Exec(working, neutral+"; "+endWhenIdle).ReadAll(); err != nil {
		return false, fmt.Errorf("after migration %s: %w", f.name, err)
	}
	return false, nil
}

// statements runs the statements of a file that are not done yet, and records each in the ledger. It runs SET and RESET
// every time, since other statements may need them.
func (r *run) statements(ctx context.Context, s *session, n shards.Number, at shardVersion, f file) error {
	p, err := s.resume(ctx, r.shape(n, at), f)
	if err != nil {
		return fmt.Errorf("before migration %s: %w", f.name, err)
	}
	if p.done > 0 || p.changed {
		r.events.send(Event{Kind: FileResumed, Host: s.host.Name, Shard: n, File: f.name, Statement: p.done + 1})
		r.cfg.Logger.Info("a migration that was begun before goes on, or starts again if it was changed meanwhile",
			slog.String("host", s.host.Name), slog.Int("shard", int(n)), slog.String("file", f.name), slog.Int("statement", p.done+1))
	}
	timeout := lockTimeout{lock: r.cfg.LockTimeout, now: -1}
	for i, st := range f.statements {
		text := st.in(f.sql)
		sets := st.setsSession()
		if i < p.done && !sets {
			continue
		}
		change, tokens := onIndex{}, tokens(text)
		query := []string{text}
		if !sets {
			change, _ = parseOnIndex(tokens)
			query = append(query, p.entered(i+1)...)
		}
		if err = timeout.set(ctx, s, st, tokens); err == nil {
			err = r.dropInvalid(ctx, s, n, change)
		}
		if err == nil {
			err = s.inOneGo(ctx, query, &p.began)
		}
		for waitedInVain(err) && errors.Is(err, errEntry) && concurrent(tokens) && !closed(fanout.Interrupted(ctx)) { // the index is there or gone: only its entry is missing
			r.events.send(Event{Kind: ShardWaits, Host: s.host.Name, Shard: n, Blockers: s.blockers(ctx, r.cfg.Map.Schema(n))})
			if err = s.inOneGo(ctx, query[1:], &p.began); waitedInVain(err) {
				err = fmt.Errorf("%w: %w", errEntry, err)
			}
		}
		if left := leftShard(err); left != nil {
			err = left
		}
		if err != nil {
			s.hintOfExtension(ctx, text, err)
			e := f.wrong(st.Start+offsetIn(text, err), text, err)
			e.Kept = i
			return e
		}
	}
	return nil
}

// inOneGo runs statements as one implicit transaction, so a statement and its ledger entry are both done or both undone.
// After a statement that cannot be part of a transaction, the server commits at once and goes on: the entry of such a
// statement is lost only if the server itself ends in between. All are sent as one message, so the server completes
// them even if this program ends. It sets last to the first column of the last row.
func (s *session) inOneGo(ctx context.Context, statements []string, last *string) error {
	pipeline := s.conn.StartPipeline(ctx)
	for _, text := range statements {
		pipeline.SendQueryParams(text, nil, nil, nil, nil)
	}
	completed := 0
	err := pipeline.Sync()
	for err == nil {
		var results any
		if results, err = pipeline.GetResults(); err != nil || results == nil {
			break
		}
		if reader, ok := results.(*pgconn.ResultReader); ok {
			for reader.NextRow() {
				if len(reader.Values()) > 0 {
					*last = string(reader.Values()[0])
				}
			}
			if _, err = reader.Close(); err == nil {
				completed++
			}
		}
	}
	if closed := pipeline.Close(); err == nil {
		err = closed
	}
	if err != nil && completed > 0 && completed < len(statements) {
		return fmt.Errorf("%w: %w", errEntry, err)
	}
	return err
}

// errEntry says that a statement was done, but its entry in the ledger was not.
var errEntry = errors.New("its entry in the ledger")

// offsetIn returns the position of the server's error in a statement, in bytes; 0 if unknown.
func offsetIn(statement string, err error) int {
	if pg, ok := err.(*pgconn.PgError); ok { //nolint:errorlint // an error that wraps one is not about the statement
		if at, ok := offset(statement, pg.Position); ok {
			return min(at, len(statement))
		}
	}
	return 0
}

// lockTimeout sets lock_timeout for each statement of a file, until the file sets it itself.
type lockTimeout struct {
	lock time.Duration // 0 for the server's setting
	now  time.Duration // the last value set; negative for none
}

// set disables the timeout for a statement that builds or drops an index concurrently: nobody waits behind it, and it would
// have to start again.
func (p *lockTimeout) set(ctx context.Context, s *session, st statement, tokens []sqltext.Token) error {
	if p.lock <= 0 {
		return nil
	}
	if st.setsSession() {
		if slices.Contains(st.Words, "lock_timeout") || st.StartsWith("reset", "all") {
			p.lock = 0
		}
		return nil
	}
	want := max(time.Millisecond, p.lock)
	if concurrent(tokens) {
		want = 0
	}
	if want == p.now {
		return nil
	}
	p.now = want
	_, err := s.conn.Exec(ctx, fmt.Sprintf("set lock_timeout = %d", want.Milliseconds())).ReadAll()
	return err
}
