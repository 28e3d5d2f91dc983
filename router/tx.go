package router

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/operation"
)

// Begin begins a transaction in the shard with the server's defaults. See [Shard.BeginTx].
func (s Shard) Begin(ctx context.Context) (pgx.Tx, error) { return s.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx begins a transaction in the shard, in one round trip. ctx governs the beginning only: the transaction, and
// with it a connection, lasts until Commit or Rollback.
//
// The transaction is pgx's own but for this: Exec, Query, QueryRow and SendBatch prepare their statements for the
// shard, as the methods of Shard do; a name given to Prepare is good for the transaction only. What is sent by way of
// Conn or LargeObjects is in the shard too, but is prepared by pgx, under its text alone.
func (s Shard) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	var t tries
	for {
		tx, lease, err := s.begin(ctx, &t, opts)
		if err == nil {
			return tx, nil
		}
		if again, err := lease.leaseAgain(ctx, &t, true, err); !again { // a BEGIN changes nothing
			return nil, err
		}
	}
}

// begin begins a transaction once.
func (s Shard) begin(ctx context.Context, t *tries, opts pgx.TxOptions) (pgx.Tx, *call, error) {
	lease, err := s.home.acquire(ctx, t, operation.Tx, "BEGIN")
	if err != nil {
		return nil, lease, err
	}
	begun, err := lease.begin(opts, false)
	return begun, lease, err
}

// Tx runs fn in a transaction, which it commits if fn returns nil and else rolls back. It returns fn's error as it is.
// fn runs once; [Retry] is for those that may run again. [ErrOutcomeUnknown] says that the COMMIT had no answer.
func (s Shard) Tx(ctx context.Context, opts pgx.TxOptions, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s, opts, fn)
}

// transaction is what a transaction and its savepoints share.
type transaction struct {
	home       *home
	lease      *call // nil once it is over
	session    *session
	names      map[string]string // SQL by the name that Prepare was given
	commit     string            // the caller's own COMMIT, or empty
	savepoints int               // how many there have been
	large      pgx.Tx            // pgx's own, once it was asked for large objects
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
	t.savepoints++
	name := "sp_" + strconv.Itoa(t.savepoints)
	if _, err := t.session.conn.Exec(t.operation(ctx, operation.Tx, "SAVEPOINT"), "savepoint "+name); err != nil {
		return nil, t.home.failed(err)
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
		return t.end(ctx, t.session.execute("rollback to savepoint "+t.savepoint), "ROLLBACK TO")
	}
	return t.end(ctx, t.rollbackAll, "ROLLBACK")
}

func (t *tx) end(ctx context.Context, how func(context.Context) error, summary string) error {
	if t.closed || t.lease == nil {
		return pgx.ErrTxClosed
	}
	t.closed = true
	err := how(t.operation(ctx, operation.Tx, summary))
	if t.savepoint == "" {
		t.lease.release()
		t.lease = nil
	}
	return t.home.failed(err)
}

// check tells whether the transaction still goes on. After a COMMIT that the caller sent as SQL there would be no path.
func (t *tx) check() error {
	switch {
	case t.closed || t.lease == nil:
		return pgx.ErrTxClosed
	case t.session.conn.PgConn().TxStatus() == 'I':
		return t.home.failed(errTxEnded)
	}
	return nil
}

// operation returns the context of an operation in the transaction.
func (t *transaction) operation(ctx context.Context, kind operation.Kind, summary string) context.Context {
	ctx, op := t.home.operation(ctx, kind, summary)
	if op != nil {
		op.Held, op.Together, op.Attempt = true, 1, t.lease.op.Attempt
	}
	return ctx
}

func (t *transaction) scope() scope {
	return scope{path: t.home.path, schema: t.home.schema, held: true}
}

// Conn returns the connection. Who uses it may leave anything on its session.
func (t *tx) Conn() *pgx.Conn {
	t.session.left = true
	return t.session.conn
}

// LargeObjects returns the large objects of the shard's database, which are in no schema. The first time it is a round trip.
func (t *tx) LargeObjects() pgx.LargeObjects {
	if t.large == nil && t.check() == nil {
		// Only a transaction of pgx's own has them, and pgx takes whatever it runs for the beginning of one.
		t.large, _ = t.session.conn.BeginTx(context.Background(), pgx.TxOptions{BeginQuery: "set local search_path = " + t.home.path})
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
	if err := t.session.note(sql); err != nil {
		return noTag, t.home.failed(err)
	}
	ctx = t.operation(ctx, operation.Tx, t.session.host.texts.Of(sql).Summary)
	tag, err := t.session.exec(ctx, t.scope(), sql, args)
	return tag, t.home.failed(sayGone(err))
}

func (t *tx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.check(); err != nil {
		return failedRows{err}, err
	}
	sql = t.text(sql)
	if err := t.session.note(sql); err != nil {
		err = t.home.failed(err)
		return failedRows{err}, err
	}
	ctx = t.operation(ctx, operation.Tx, t.session.host.texts.Of(sql).Summary)
	rows, err := t.session.query(ctx, t.home, t.scope(), sql, args)
	if err != nil {
		return failedRows{err}, err
	}
	return rows, nil
}

func (t *tx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, _ := t.Query(ctx, sql, args...)
	return row{rows}
}

func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.check(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	results, err := t.session.sendBatch(t.operation(ctx, operation.Batch, ""), t.home, t.scope(), b)
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	return results
}

// Prepare checks a statement and gives it a name for the rest of the transaction. The name on the server is another.
func (t *tx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	all := []statement{{sql: sql, mode: pgx.QueryExecModeCacheStatement}}
	if _, err := t.session.describe(ctx, t.scope(), all); err != nil {
		return nil, t.home.failed(err)
	}
	if name != "" {
		if t.names == nil {
			t.names = map[string]string{}
		}
		t.names[name] = sql
	}
	return all[0].desc, nil
}
