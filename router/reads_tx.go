package router

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/internal/conns"
	"github.com/kiloshard/kiloshard/router/internal/session"
	"github.com/kiloshard/kiloshard/router/operation"
)

var errReaderBegin = errors.New("a reader's transactions only read: expected no BeginQuery, and no access mode but read only")

// Begin begins a transaction that only reads. See [Reader.BeginTx].
func (r Reader) Begin(ctx context.Context) (pgx.Tx, error) { return r.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx begins a transaction that only reads, all of it on one server, as [Shard.BeginTx] does. If it cannot begin on
// one server, or if its first statement finds that the shard has moved, it begins on the next. Later errors are the caller's.
// Postgres has no serializable transactions on replicas. A query at its beginning keeps everybody from making it one that
// writes.
func (r Reader) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	if opts.BeginQuery != "" || opts.AccessMode != "" && opts.AccessMode != pgx.ReadOnly {
		return nil, r.shard.placement.now().Failed(errReaderBegin)
	}
	opts.AccessMode = pgx.ReadOnly
	w := r.walk()
	tx, at, err := w.begin(ctx, opts)
	if err != nil {
		return nil, err
	}
	session.Follows(tx, func(context.Context, bool) bool { return at.from.Gone() }, func(ctx context.Context, err error) (next pgx.Tx, _ error) {
		waits := at.replica == nil && errors.Is(err, ErrMoved)
		if waits && !w.awaitMoved(ctx, at) || !waits && !w.goesOn(ctx, at, err, true) {
			return nil, err
		}
		next, at, err = w.begin(ctx, opts)
		return next, err
	})
	return tx, nil
}

// begin begins a transaction on one server after another.
func (w *walk) begin(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, station, error) {
	for {
		at, err := w.next(ctx)
		if err != nil {
			return nil, at, err
		}
		limited, done := at.until(ctx)
		tx, err := at.begin(limited, opts)
		done()
		if err == nil {
			return tx, at, nil
		}
		if !w.goesOn(ctx, at, err, true) {
			return nil, at, w.last
		}
	}
}

// Tx runs fn in a transaction that only reads, as [Shard.Tx] does in one that may write. fn runs once.
func (r Reader) Tx(ctx context.Context, opts pgx.TxOptions, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r, opts, fn)
}

// SendBatch sends the queries of a batch together, all to one server, as [Shard.SendBatch] does. When they cannot be sent
// to one server, they are to the next; a result that does not come is the caller's.
func (r Reader) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	w := r.walk()
	for {
		at, err := w.next(ctx)
		if err != nil {
			return pgx.FailedBatchResults(b, err)
		}
		results, err := at.batch(ctx, b)
		if err == nil {
			return results
		}
		if !w.goesOn(ctx, at, err, false) {
			return pgx.FailedBatchResults(b, w.last)
		}
	}
}

func (at station) batch(ctx context.Context, b *pgx.Batch) (pgx.BatchResults, error) {
	var t conns.Attempts
	for {
		lease, err := t.Acquire(ctx, &at.placement.Shard, operation.Batch, "")
		if err == nil {
			if !at.measured(lease.Session()) {
				lease.Release()
				return at.batchGuarded(ctx, b)
			}
			var results pgx.BatchResults
			if results, err = lease.SendBatch(b); err == nil {
				return results, nil
			}
		}
		if err := at.retry(ctx, lease, &t, false, err); err != nil {
			return nil, err
		}
	}
}
