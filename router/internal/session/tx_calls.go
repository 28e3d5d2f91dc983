package session

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/router/operation"
)

var _ pgx.Tx = (*tx)(nil)

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
		sc.ends = &t.committed
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
