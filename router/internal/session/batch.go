package session

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/failure"
)

// SendBatch sends the queries of a batch, which stand by themselves. The lease is given back when the results are closed, but
// not after an error here, which is about the shard.
func (s *Session) SendBatch(ctx context.Context, shard *Shard, held lease, b *pgx.Batch) (pgx.BatchResults, error) {
	results, err := s.sendBatch(ctx, shard, shard.Scope(), b)
	if err != nil {
		return nil, err
	}
	return &leasedResults{results, held}, nil
}

// sendBatch sends the queries of a batch. Its error is about the shard.
func (s *Session) sendBatch(ctx context.Context, h *Shard, sc Scope, b *pgx.Batch) (*results, error) {
	ctx = s.host.Trace.Batch(ctx, s.Conn, b, s.host.Texts.SummaryOf)
	results, err := s.startBatch(ctx, h, sc, b)
	if err != nil {
		s.host.Trace.BatchEnd(ctx, s.Conn, err)
		return nil, h.Failed(err)
	}
	return results, nil
}

func (s *Session) startBatch(ctx context.Context, h *Shard, sc Scope, b *pgx.Batch) (*results, error) {
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
		return &results{session: s, ctx: ctx, shard: h}, nil
	}
	answers, sent, err := s.send(ctx, sc, all)
	if err = withFenced(err); err != nil && (!sent || entryState(err) != "" || errors.Is(err, failure.ErrMoved)) {
		return nil, err
	}
	if !sc.held && MayHaveMoved(err) { // nothing of the batch has taken effect
		if moved := s.CheckEntry(ctx, h); errors.Is(moved, failure.ErrMoved) {
			return nil, moved
		}
	}
	r := &results{session: s, ctx: ctx, shard: h, queued: b.QueuedQueries, all: all, first: err}
	if err == nil {
		r.answers = &answers
	}
	return r, nil
}
