package router

import (
	"context"
	"errors"

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
			if results, err = lease.line.session.sendBatch(lease.ctx, lease.home, lease.home.scope(), b); err == nil {
				return &leasedResults{results, lease}
			}
			lease.release()
		}
		if again, err := lease.leaseAgain(ctx, &t, false, err); !again {
			return pgx.FailedBatchResults(b, err)
		}
	}
}

// sendBatch sends the queries of a batch. Its error is about the shard.
func (s *session) sendBatch(ctx context.Context, h *home, sc scope, b *pgx.Batch) (pgx.BatchResults, error) {
	ctx = s.host.trace.Batch(ctx, s.conn, b, s.host.texts.SummaryOf)
	results, err := s.startBatch(ctx, h, sc, b)
	if err != nil {
		s.host.trace.BatchEnd(ctx, s.conn, err)
		return nil, h.failed(err)
	}
	return results, nil
}

func (s *session) startBatch(ctx context.Context, h *home, sc scope, b *pgx.Batch) (pgx.BatchResults, error) {
	if pgx.FailedBatchResults(b, errBatchBegin).Tx() != nil { // the one way to see that BeginTx was called
		return nil, errBatchBegin
	}
	all := make([]statement, len(b.QueuedQueries))
	for i, queued := range b.QueuedQueries {
		var err error
		if all[i], err = s.parse(ctx, queued.SQL, queued.Arguments); err != nil {
			return nil, err
		}
		if err := s.note(all[i].sql); err != nil {
			return nil, err
		}
		if !sc.held && callsProcedure(all[i].sql) {
			return nil, errProcedure
		}
	}
	if len(all) == 0 {
		return &results{session: s, ctx: ctx, home: h}, nil
	}
	answers, sent, err := s.send(ctx, sc, all)
	if err = sayGone(err); err != nil && (!sent || entryState(err) != "" || errors.Is(err, ErrMoved)) {
		return nil, err
	}
	r := &results{session: s, ctx: ctx, home: h, queued: b.QueuedQueries, all: all, first: err}
	if err == nil {
		r.answers = &answers
	}
	return r, nil
}
