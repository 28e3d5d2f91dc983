package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/operation"
)

// transaction is what a transaction and its savepoints share.
type transaction struct {
	shard      *Shard
	lease      lease // nil once it is over
	attempt    int   // of how many by Retry
	session    *Session
	names      map[string]string // SQL by the name that Prepare was given
	commit     string            // the caller's own COMMIT, or empty
	savepoints int               // how many there have been
	large      pgx.Tx            // pgx's own, once it was asked for large objects
	touched    bool              // a statement of the caller's has run, or may have
	late       bool              // it begins with its first statement, which has not come
	committed  bool              // with its last statement
	reads      bool              // nothing may be written in it
	left       func(ctx context.Context, wait bool) bool
	again      func(context.Context, error) (pgx.Tx, error)
}

// ShardOf returns the shard of a transaction, nil for one that is none of the router's.
func ShardOf(of pgx.Tx) *Shard {
	if t, ok := of.(*tx); ok {
		return t.shard
	}
	return nil
}

// tx is a transaction or one of its savepoints.
type tx struct {
	*transaction
	savepoint string // its name; empty for the transaction itself
	closed    bool
}

func (t *tx) Commit(ctx context.Context) error {
	if t.savepoint != "" {
		return t.end(ctx, t.session.execute("release savepoint "+t.savepoint), "RELEASE")
	}
	return t.end(ctx, t.commitOnce, "COMMIT")
}

func (t *tx) Rollback(ctx context.Context) error {
	if t.savepoint != "" {
		return t.end(ctx, t.rolledBack(t.session.execute("rollback to savepoint "+t.savepoint)), "ROLLBACK TO")
	}
	return t.end(ctx, t.rolledBack(t.rollbackAll), "ROLLBACK")
}

func (t *tx) end(ctx context.Context, how func(context.Context) error, summary string) error {
	if t.closed || t.lease == nil {
		return pgx.ErrTxClosed
	}
	t.closed = true
	if t.savepoint == "" {
		defer func() { // a tracer may panic
			t.lease.Release()
			t.lease = nil
		}()
	}
	return t.shard.Failed(how(t.operation(ctx, operation.Tx, summary)))
}

// check reports whether the transaction still goes on. After a COMMIT that the caller sent as SQL there would be no path.
func (t *tx) check() error {
	switch {
	case t.closed || t.lease == nil:
		return pgx.ErrTxClosed
	case t.session.Conn.PgConn().TxStatus() == 'I':
		return t.shard.Failed(errTxEnded)
	}
	return nil
}

// rolledBack returns what rolls back, as the end of the connection does, too: after that no statement may have run.
func (t *tx) rolledBack(how func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := how(ctx)
		if failure.Lost(err) {
			return failure.RolledBackError{Cause: err}
		}
		return err
	}
}

// operation returns the context of an operation in the transaction.
func (t *transaction) operation(ctx context.Context, kind operation.Kind, summary string) context.Context {
	ctx, op := t.shard.Operation(ctx, kind, summary)
	if op != nil {
		op.Held, op.Together, op.Attempt = true, 1, t.attempt
	}
	return ctx
}

func (t *transaction) scope() Scope {
	return Scope{path: t.shard.Path, schema: t.shard.Schema, held: true, Reads: t.reads}
}

// commitOnce sends the COMMIT of a transaction.
func (t *tx) commitOnce(ctx context.Context) error {
	open := !t.session.Conn.IsClosed()
	err := t.commitAll(ctx)
	if err == nil || !open || errors.Is(err, errTxEnded) {
		return err
	}
	return orUnknown(err)
}

// rollbackAll rolls the transaction back.
func (t *transaction) rollbackAll(ctx context.Context) error {
	if t.late || t.committed {
		return nil
	}
	if t.large != nil {
		return t.large.Rollback(ctx)
	}
	return t.session.rollback(ctx)
}

// commitAll commits the transaction, by a query of the caller's own if there is one.
func (t *transaction) commitAll(ctx context.Context) error {
	s := t.session
	var tag pgconn.CommandTag
	var err error
	switch {
	case t.late || t.committed:
		return nil
	case t.commit == "" && t.large != nil:
		if s.Conn.PgConn().TxStatus() == 'T' {
			if result := s.Conn.PgConn().ExecParams(ctx, t.scope().endOfTx(), nil, nil, nil, nil).Read(); result.Err != nil {
				return result.Err
			}
		}
		return t.large.Commit(ctx)
	case t.commit == "":
		tag, err = s.commit(ctx, t.scope())
	default:
		if t.large != nil {
			defer t.large.Rollback(ctx) // it has ended, and is to know that
		}
		if err := s.note(t.commit); err != nil {
			return errors.Join(err, s.rollback(ctx))
		}
		tag, err = s.Exec(ctx, t.scope(), t.commit, nil)
	}
	switch status := s.Conn.PgConn().TxStatus(); {
	case err != nil && status != 'I':
		_ = s.Conn.Close(ctx) // there is an error already
	case err == nil && status != 'I':
		_ = s.Conn.Close(ctx) // an error leaves it closed, too
		return fmt.Errorf("CommitQuery has left the transaction open: %s", t.commit)
	case err == nil && tag.String() == "ROLLBACK":
		return pgx.ErrTxCommitRollback
	}
	return err
}

// commit sends a COMMIT, under the path of the shard: triggers that are deferred run in it.
func (s *Session) commit(ctx context.Context, sc Scope) (tag pgconn.CommandTag, err error) {
	ctx, trace := s.host.Trace.Query(ctx, s.Conn, "commit", nil)
	defer func() { trace.End(tag, err) }()
	query := "commit"
	if s.Conn.PgConn().TxStatus() == 'T' {
		query = sc.endOfTx() + "; commit"
	}
	// One message, of which pgconn knows whether any of it was sent: of a pgconn.Batch it does not.
	answers := s.Conn.PgConn().Exec(ctx, query)
	for answers.NextResult() {
		tag, _ = answers.ResultReader().Close() // its error is the answers' too
	}
	return tag, answers.Close()
}

// execute returns what runs a statement of the router's own in a transaction.
func (s *Session) execute(query string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.Conn.Exec(ctx, query)
		return err
	}
}
