package router

import (
	"context"

	"github.com/jackc/pgx/v5"

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
