package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/sql"
)

// CheckEntry sends an entry by itself, and returns its error, which is about the shard.
func (s *Session) CheckEntry(ctx context.Context, shard *Shard) error {
	answers, _, err := s.send(ctx, shard.Scope(), []statement{{sql: "select", mode: pgx.QueryExecModeExec}})
	if err != nil {
		return shard.Failed(err)
	}
	return answers.Close()
}

// Follows has a transaction know when its shard moves. left reports whether the shard has another host by now; where the move may not
// have ended, it waits for that. If nothing has run in the transaction yet, again begins it once more, when its first statement
// finds that the shard has moved, or where it was to begin with that. again is given the error, and returns one if that is for the caller.
func Follows(begun pgx.Tx, left func(ctx context.Context, wait bool) bool, again func(context.Context, error) (pgx.Tx, error)) {
	if t, ok := begun.(*tx); ok {
		t.left, t.again = left, again
	}
}

// movedSince reports whether a statement has failed because the shard has moved since the transaction was begun, as far as is known.
func (t *tx) movedSince(ctx context.Context, err error) bool {
	if t.left == nil || t.lease == nil || !MayHaveMoved(err) || errors.Is(err, failure.ErrMoved) || t.session.Conn.PgConn().TxStatus() != 'E' {
		return false
	}
	code := failure.SQLState(err)
	return t.left(ctx, code == sql.Refused || code == "2200H") // a sequence that gives nothing is rare but for moves
}

// orMoved adds [failure.ErrMoved] to the error of such a statement, which has undone all of the transaction.
func (t *tx) orMoved(ctx context.Context, err error) error {
	if t.movedSince(ctx, err) {
		return t.shard.Failed(failure.Moved(err))
	}
	return err
}

// restart reports whether the caller repeats a call: it failed because the shard had moved, it was the first in the transaction, and
// restart has begun the transaction again on the shard's new host.
func (t *tx) restart(ctx context.Context, err error) bool {
	first := !t.touched
	t.touched = true
	if err == nil || !first || t.again == nil {
		return false
	}
	moved, mayHave := errors.Is(err, failure.ErrMoved), MayHaveMoved(err)
	if !t.late && (!moved && !mayHave || t.session.Conn.PgConn().TxStatus() != 'E') || t.rollbackAll(ctx) != nil {
		return false
	}
	if mayHave && !moved {
		checkErr := t.session.CheckEntry(ctx, t.shard)
		switch {
		case errors.Is(checkErr, failure.ErrMoved):
			err = checkErr
		case !t.late:
			t.session.failAgain(ctx)
			return false
		}
	}
	held, again := t.lease, t.again
	t.lease = nil
	held.Release()
	begun, err := again(ctx, err)
	if err != nil {
		return false
	}
	next, ok := begun.(*tx)
	if !ok {
		return false
	}
	names, left := t.names, t.left
	*t.transaction = *next.transaction
	t.names, t.left, t.again = names, left, again
	return true
}

// failAgain begins a transaction that has failed, in place of one that has and was rolled back.
func (s *Session) failAgain(ctx context.Context) {
	const query = `begin; select pg_catalog.int4in('this transaction has failed already')`
	_, _ = s.Conn.PgConn().Exec(ctx, query).ReadAll()
	if s.Conn.PgConn().TxStatus() != 'E' {
		_ = s.Conn.Close(ctx) // an error leaves it closed, too
	}
}
