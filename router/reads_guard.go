package router

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/router/operation"

	"github.com/kiloshard/kiloshard/router/internal/session"

	"github.com/kiloshard/kiloshard/router/internal/conns"
)

// errServersTurn says that a pooler has gone from one server to another.
var errServersTurn = errors.New("the transaction was begun on another server than the one that was asked")

func (e guardError) Unwrap() error { return e.error }

// measured reports whether a session is on the server for which the replica was chosen.
func (at station) measured(s *session.Session) bool {
	return at.replica == nil || s.Server != "" && s.Server == at.server
}

// guard asks the server of a session whether it may be read, and returns which one that is.
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

// queryGuarded runs a statement in a transaction that asks its server first.
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

// batchGuarded sends a batch in a transaction that asks its server first.
func (at station) batchGuarded(ctx context.Context, b *pgx.Batch) (pgx.BatchResults, error) {
	tx, err := at.begin(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	return &txResults{tx.SendBatch(ctx, b), tx}, nil
}

// txResults are those of a batch in a transaction of their own.
type txResults struct {
	pgx.BatchResults
	tx pgx.Tx
}

// Close ends the transaction too.
func (r *txResults) Close() error {
	err := r.BatchResults.Close()
	rollBack(r.tx)
	return err
}

// rollBack ends a transaction that has written nothing.
func rollBack(tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.Background(), session.EndLimit)
	defer cancel()
	_ = tx.Rollback(ctx) // it may have ended
}

// begin begins a transaction on this server. On a replica that was not measured the server is asked before, and again within
// the transaction, which may be on another one behind a pooler. What it reads is at least what was there before.
func (at station) begin(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	began := time.Now()
	p := at.placement
	lease, err := new(conns.Attempts).Acquire(ctx, &p.Shard, operation.Tx, "BEGIN")
	if err != nil {
		return nil, lease.Unsent(err)
	}
	s := lease.Session()
	asked := ""
	if !at.measured(s) {
		if asked, err = at.guard(ctx, s, began); err != nil {
			lease.Release()
			return nil, err
		}
	}
	begun, err := lease.Begin(opts, true)
	if err != nil || asked == "" {
		return begun, err
	}
	server, err := at.guard(ctx, s, began)
	if err == nil && server != asked {
		err = at.placement.Host.Failed(guardError{errServersTurn})
	}
	if err != nil {
		rollBack(begun)
		return nil, err
	}
	return begun, nil
}
