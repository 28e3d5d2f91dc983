package router

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/operation"
)

// errOtherServer says that a pooler switched to another server between the check and the BEGIN.
var errOtherServer = errors.New("the transaction began on a server other than the one that was checked")

func (e guardError) Unwrap() error { return e.error }

// measured reports whether the session is on the server whose measurement chose the replica.
func (at station) measured(s *session.Session) bool {
	return at.replica == nil || s.Server != "" && s.Server == at.server
}

// guard checks that reads may use the session's server, and returns which server it is.
func (at station) guard(ctx context.Context, s *session.Session, began time.Time) (server string, err error) {
	set := at.replica.of.Set
	seen, err := set.Ask(ctx, at.replica.index, s.Conn.PgConn())
	if err == nil {
		err = set.Check(at.replica.index, at.want, began, seen)
	}
	switch {
	case err == nil:
		return seen.Server, nil
	case failure.Lost(err), ctx.Err() != nil:
		return "", at.placement.Host.Failed(err)
	}
	return "", at.placement.Host.Failed(guardError{err})
}

// queryGuarded runs a statement in a transaction that checks its server first.
func (at station) queryGuarded(ctx context.Context, sql string, args []any) (pgx.Rows, error) {
	tx, err := at.begin(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly, IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		rollBack(tx)
		return nil, err
	}
	return &endedRows{rows, func() { rollBack(tx) }}, nil
}

// batchGuarded sends a batch in a transaction that checks its server first.
func (at station) batchGuarded(ctx context.Context, b *pgx.Batch) (pgx.BatchResults, error) {
	tx, err := at.begin(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	return &txResults{tx.SendBatch(ctx, b), tx}, nil
}

// txResults are the results of a batch that has its own transaction.
type txResults struct {
	pgx.BatchResults
	tx pgx.Tx
}

// Close also ends the transaction.
func (r *txResults) Close() error {
	err := r.BatchResults.Close()
	rollBack(r.tx)
	return err
}

// rollBack rolls back a transaction that wrote nothing.
func rollBack(tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.Background(), session.EndLimit)
	defer cancel()
	_ = tx.Rollback(ctx) // fails if the transaction has ended
}

// begin begins a transaction on this server. If the server was not measured, begin checks it before the BEGIN and again
// inside the transaction, which a pooler may run on another server. The second check makes sure that both are the same
// server, so that the transaction sees at least what the first check saw.
func (at station) begin(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	var t conns.Attempts
	for {
		tx, lease, err := at.beginOnce(ctx, &t, opts)
		if err == nil || errors.As(err, new(guardError)) {
			return tx, err
		}
		if err := at.retry(ctx, lease, &t, true, err); err != nil {
			return nil, err
		}
	}
}

func (at station) beginOnce(ctx context.Context, t *conns.Attempts, opts pgx.TxOptions) (pgx.Tx, *conns.Request, error) {
	began := time.Now()
	lease, err := t.Acquire(ctx, &at.placement.Shard, operation.Tx, "BEGIN")
	if err != nil {
		return nil, lease, err
	}
	s := lease.Session()
	asked := ""
	if !at.measured(s) {
		if asked, err = at.guard(ctx, s, began); err != nil {
			lease.Release()
			return nil, lease, err
		}
	}
	begun, err := lease.Begin(opts, true)
	if err != nil || asked == "" {
		return begun, lease, err
	}
	server, err := at.guard(ctx, s, began)
	if err == nil && server != asked {
		err = at.placement.Host.Failed(guardError{errOtherServer})
	}
	if err != nil {
		rollBack(begun)
		return nil, lease, err
	}
	return begun, lease, nil
}
