package router

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
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
	lease, err := s.home.acquire(ctx, t, KindTx, "BEGIN")
	if err != nil {
		return nil, lease, err
	}
	opts.BeginQuery = beginQuery(opts)
	home := lease.home
	if lease.line.session.at != home.path {
		opts.BeginQuery += "; set local search_path = " + home.path
	}
	traced(lease.ctx)
	inner, err := lease.line.session.conn.BeginTx(lease.ctx, opts)
	if err != nil {
		lease.release()
		return nil, lease, home.failed(err)
	}
	return &tx{Tx: inner, transaction: &transaction{home: home, lease: lease, session: lease.line.session}}, lease, nil
}

// Tx runs fn in a transaction, which it commits if fn returns nil and else rolls back. It returns fn's error as it is.
// fn runs once; [Retry] is for those that may run again. [ErrOutcomeUnknown] says that the COMMIT had no answer.
func (s Shard) Tx(ctx context.Context, opts pgx.TxOptions, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s, opts, fn)
}

// beginQuery returns the statement with which pgx begins a transaction.
func beginQuery(opts pgx.TxOptions) string {
	if opts.BeginQuery != "" {
		return opts.BeginQuery
	}
	query := "begin"
	if opts.IsoLevel != "" {
		query += " isolation level " + string(opts.IsoLevel)
	}
	if opts.AccessMode != "" {
		query += " " + string(opts.AccessMode)
	}
	if opts.DeferrableMode != "" {
		query += " " + string(opts.DeferrableMode)
	}
	return query
}

// transaction is what a transaction and its savepoints share.
type transaction struct {
	home    *home
	lease   *call // nil once it is over
	session *session
	names   map[string]string // SQL by the name that Prepare was given
}

// tx is a transaction or one of its savepoints. What it does not do itself, pgx does.
type tx struct {
	pgx.Tx
	*transaction
	savepoint bool
	closed    bool
}

func (t *tx) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	inner, err := t.Tx.Begin(t.operation(ctx, KindTx, "SAVEPOINT"))
	if err != nil {
		return nil, t.home.failed(err)
	}
	return &tx{Tx: inner, transaction: t.transaction, savepoint: true}, nil
}

func (t *tx) Commit(ctx context.Context) error { return t.end(ctx, t.commit, "COMMIT", "RELEASE") }

func (t *tx) Rollback(ctx context.Context) error {
	return t.end(ctx, t.Tx.Rollback, "ROLLBACK", "ROLLBACK TO")
}

func (t *tx) end(ctx context.Context, how func(context.Context) error, whole, savepoint string) error {
	if t.closed || t.lease == nil {
		return pgx.ErrTxClosed
	}
	t.closed = true
	summary := whole
	if t.savepoint {
		summary = savepoint
	}
	err := how(t.operation(ctx, KindTx, summary))
	if !t.savepoint {
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
func (t *transaction) operation(ctx context.Context, kind Kind, summary string) context.Context {
	ctx, op := t.home.operation(ctx, kind, summary)
	if op != nil {
		op.Held, op.Together, op.Attempt = true, 1, t.lease.op.Attempt
	}
	return ctx
}

func (t *tx) scope() scope { return scope{path: t.home.path, held: true} }

// Conn returns the connection. Who uses it may leave anything on its session.
func (t *tx) Conn() *pgx.Conn {
	t.session.left = true
	return t.Tx.Conn()
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
	ctx = t.operation(ctx, KindTx, t.session.host.texts.of(sql).summary)
	tag, err := t.session.exec(ctx, t.scope(), sql, args)
	return tag, t.home.failed(err)
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
	ctx = t.operation(ctx, KindTx, t.session.host.texts.of(sql).summary)
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
	results, err := t.session.sendBatch(t.operation(ctx, KindBatch, ""), t.home, t.scope(), b)
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
