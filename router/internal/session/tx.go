package session

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/together"
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

// tx is a transaction or one of its savepoints.
type tx struct {
	*transaction
	savepoint string // its name; empty for the transaction itself
	closed    bool
}

var _ pgx.Tx = (*tx)(nil)

func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	t.touched = true
	t.savepoints++
	name := "sp_" + strconv.Itoa(t.savepoints)
	if _, err := t.session.Conn.Exec(t.operation(ctx, operation.Tx, "SAVEPOINT"), "savepoint "+name); err != nil {
		return nil, t.shard.Failed(err)
	}
	return &tx{transaction: t.transaction, savepoint: name}, nil
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

// Conn returns the connection. Its user may leave anything on the session.
func (t *tx) Conn() *pgx.Conn {
	t.session.Left, t.touched = true, true
	return t.session.Conn
}

// LargeObjects returns the large objects of the shard's database, which are in no schema. The first time it is a round trip.
func (t *tx) LargeObjects() pgx.LargeObjects {
	t.touched = true
	if t.large == nil && t.check() == nil {
		// Only a transaction of pgx's own has them, and pgx regards the query that it runs as the beginning of one.
		t.large, _ = t.session.Conn.BeginTx(context.Background(), pgx.TxOptions{BeginQuery: "set local search_path = " + t.shard.Path})
	}
	if t.large == nil {
		var none pgx.Batch
		none.BeginTx(pgx.TxOptions{})
		return pgx.FailedBatchResults(&none, pgx.ErrTxClosed).Tx().LargeObjects() // of a transaction that has ended
	}
	return t.large.LargeObjects()
}

// text returns the SQL that a name stands for, or else the SQL that it is.
func (t *tx) text(sql string) string {
	if text, found := t.names[sql]; found {
		return text
	}
	return sql
}

func (t *tx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.check(); err != nil {
		return noTag, err
	}
	sql = t.text(sql)
	t.touched = t.touched || len(t.session.pieces(sql)) > 1 // one of them may have ended the transaction
	tag, err := t.exec(ctx, sql, args)
	for t.restart(ctx, err) {
		tag, err = t.exec(ctx, sql, args)
	}
	return tag, t.orMoved(ctx, err)
}

// exec runs SQL once.
func (t *tx) exec(ctx context.Context, sql string, args []any) (pgconn.CommandTag, error) {
	if err := t.session.note(sql); err != nil {
		return noTag, t.shard.Failed(err)
	}
	ctx = t.operation(ctx, operation.Tx, t.session.host.Texts.Of(sql).Summary)
	tag, err := t.session.Exec(ctx, t.scope(), sql, args)
	return tag, t.shard.Failed(withFenced(err))
}

func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.check(); err != nil && (!t.late || t.closed || t.lease == nil) {
		return FailedRows(err), err
	}
	sql = t.text(sql)
	rows, err := t.query(ctx, sql, args)
	for t.restart(ctx, err) {
		rows, err = t.query(ctx, sql, args)
	}
	if err != nil {
		err = t.orMoved(ctx, err)
		return FailedRows(err), err
	}
	return rows, nil
}

// query runs a statement once.
func (t *tx) query(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	if err := t.session.note(sql); err != nil {
		return nil, t.shard.Failed(err)
	}
	ctx = t.operation(ctx, operation.Tx, t.session.host.Texts.Of(sql).Summary)
	sc := t.scope()
	sc.opens, sc.held = t.late, !t.late
	if together.Commits(ctx) {
		sc.ends = t.transaction
	}
	rows, err := t.session.Query(ctx, t.shard, nil, sc, sql, args)
	t.late = t.late && err != nil
	return rows, err
}

func (t *tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := t.Query(ctx, sql, args...)
	return Row{Rows: rows}
}

func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.check(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	results, err := t.session.sendBatch(t.operation(ctx, operation.Batch, ""), t.shard, t.scope(), b)
	for t.restart(ctx, firstError(results, err)) {
		endUnread(results)
		results, err = t.session.sendBatch(t.operation(ctx, operation.Batch, ""), t.shard, t.scope(), b)
	}
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	if first := firstError(results, nil); t.movedSince(ctx, first) {
		endUnread(results)
		return pgx.FailedBatchResults(b, t.shard.Failed(failure.Moved(first)))
	}
	return results
}

// Prepare checks a statement and gives it a name for the rest of the transaction. The name on the server is another.
func (t *tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	all := []statement{{sql: sql, mode: pgx.QueryExecModeCacheStatement}}
	describe := func() error {
		_, err := t.session.describe(ctx, t.scope(), all)
		return t.shard.Failed(err)
	}
	touched, err := t.touched, describe()
	for t.restart(ctx, err) {
		err = describe()
	}
	if err != nil {
		return nil, err
	}
	t.touched = touched // it can be prepared anywhere
	if name != "" {
		if t.names == nil {
			t.names = map[string]string{}
		}
		t.names[name] = sql
	}
	return all[0].desc, nil
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

// orUnknown adds [failure.ErrOutcomeUnknown] to an error of a COMMIT that may have taken effect.
func orUnknown(err error) error {
	if err == nil || failure.NotCommitted(err) {
		return err
	}
	return fmt.Errorf("%w: %w", failure.ErrOutcomeUnknown, err)
}

// BeginTx begins a transaction. With reading nothing may be written in it. The lease is given back when it is over, but not
// after an error here. Tracers get attempt. The error is about the shard.
func (s *Session) BeginTx(ctx context.Context, shard *Shard, held lease, attempt int, opts pgx.TxOptions, reading bool) (pgx.Tx, error) {
	late := together.BeginsLate(ctx) && opts == pgx.TxOptions{} && !reading
	if !late {
		if err := s.begin(ctx, shard.Scope(), opts, reading); err != nil {
			return nil, shard.Failed(err)
		}
	}
	return &tx{transaction: &transaction{shard: shard, lease: held, attempt: attempt, session: s, commit: opts.CommitQuery, late: late, reads: reading}}, nil
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
