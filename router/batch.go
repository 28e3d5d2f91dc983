package router

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/operation"
)

// SendBatch sends the queries of a batch together, as one transaction, and returns their results, which hold a
// connection until they are closed. Callbacks are called as those results say. The batch itself is left as it is.
//
// Statements that are new to the connection are prepared first, all in one round trip. A batch with Batch.BeginTx
// fails, and so does one that goes on after a statement which ends the transaction.
func (s Shard) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	var t tries
	for {
		lease, err := s.home.acquire(ctx, &t, operation.Batch, "")
		if err == nil {
			var results pgx.BatchResults
			if results, err = lease.line.session.SendBatch(lease.ctx, &lease.home.Shard, lease, b); err == nil {
				return results
			}
			lease.Release()
		}
		if again, err := lease.leaseAgain(ctx, &t, false, err); !again {
			return pgx.FailedBatchResults(b, err)
		}
	}
}
