// Package statements runs a file outside a transaction, statement by statement, and goes on where an earlier run ended.
package statements

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/internal/sqltext"
	"github.com/kiloshard/kiloshard/migrate/internal/files"
	"github.com/kiloshard/kiloshard/migrate/internal/script"
	"github.com/kiloshard/kiloshard/migrate/internal/session"
)

// Run runs files in one shard, statement by statement, outside a transaction.
type Run struct {
	Shape   script.Shape
	Logger  *slog.Logger
	Resumed func(statement int)   // called if an earlier run began the file, with the statement where it goes on, from 1
	Waits   func(blockers string) // called when the entry in the ledger has to wait for a lock
}

// File runs the statements of a file that are not done yet, and records each in the ledger. It runs SET and RESET
// every time, since other statements may need them.
func (r Run) File(ctx context.Context, s *session.Session, f files.File) error {
	p, err := resume(ctx, s, r.Shape, f)
	if err != nil {
		return fmt.Errorf("before migration %s: %w", f.Name, err)
	}
	if p.done > 0 || p.changed {
		r.Resumed(p.done + 1)
		r.Logger.Info("a migration resumes after an earlier run, or starts again because its file has changed",
			slog.String("host", s.Host.Name), slog.Int("shard", int(r.Shape.Shard)), slog.String("file", f.Name), slog.Int("statement", p.done+1))
	}
	timeout := lockTimeout{lock: r.Shape.LockTimeout, now: -1}
	for i, st := range f.Statements {
		text := st.In(f.SQL)
		sets := st.SetsSession()
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
			err = r.dropInvalid(ctx, s, change)
		}
		if err == nil {
			err = inOneGo(ctx, s, query, &p.began)
		}
		for session.WaitedInVain(err) && errors.Is(err, errEntry) && concurrent(tokens) && !session.Interrupted(ctx) { // the index is there or gone: only its entry is missing
			r.Waits(s.Blockers(ctx, r.Shape.Schema))
			if err = inOneGo(ctx, s, query[1:], &p.began); session.WaitedInVain(err) {
				err = fmt.Errorf("%w: %w", errEntry, err)
			}
		}
		if left := script.Left(err); left != nil {
			err = left
		}
		if err != nil {
			script.Hint(ctx, s, text, err)
			e := f.Wrong(st.Start+offsetIn(text, err), text, err)
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
func inOneGo(ctx context.Context, s *session.Session, statements []string, last *string) error {
	pipeline := s.Conn.StartPipeline(ctx)
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
		if at, ok := script.Offset(statement, pg.Position); ok {
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
func (p *lockTimeout) set(ctx context.Context, s *session.Session, st files.Statement, tokens []sqltext.Token) error {
	if p.lock <= 0 {
		return nil
	}
	if st.SetsSession() {
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
	_, err := s.Conn.Exec(ctx, fmt.Sprintf("set lock_timeout = %d", want.Milliseconds())).ReadAll()
	return err
}
