package objects

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/router"
)

// ErrOtherShard says that an object or a key is in another shard than the transaction in which it was to be read or written.
var ErrOtherShard = errors.New("in another shard than the transaction")

// Within returns the store as seen in a transaction of one shard, such as that of a board and its pins:
//
//	err := router.Retry{}.Tx(ctx, place.Shard, pgx.TxOptions{}, func(tx pgx.Tx) error {
//		pins, err := pins.Within(tx)
//		…
//	})
//
// What it does takes effect with the transaction, or not at all. Create uses its shard. IDs of other shards are
// [ErrOtherShard]. Reads do not use the cache, and a change that is not committed yet may drop an entry that a reader stores again: it
// then stays for the age of the cache. The transaction must be one of this router: see [router.Router.ForTx].
func (t *Type[T]) Within(tx pgx.Tx) (*Type[T], error) {
	in, err := within(t.r, tx)
	of := *t
	of.in = in
	return &of, err
}

// Within returns the mapping as seen in a transaction. See [Type.Within].
func (m *Mapping) Within(tx pgx.Tx) (*Mapping, error) {
	in, err := within(m.r, tx)
	of := *m
	of.in = in
	return &of, err
}

// Within returns the table as seen in a transaction. See [Type.Within].
func (m *Mod[T]) Within(tx pgx.Tx) (*Mod[T], error) {
	in, err := within(m.r, tx)
	of := *m
	of.in = in
	return &of, err
}

// transaction is the one that a store works within, if there is one.
type transaction struct {
	tx    pgx.Tx // nil for none
	shard router.Shard
}

func within(r *router.Router, tx pgx.Tx) (transaction, error) {
	shard, err := r.ForTx(tx)
	return transaction{tx, shard}, err
}

// sender is a shard, or a transaction in it.
type sender interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// on returns where statements for a shard are sent.
func (in transaction) on(shard router.Shard) (sender, error) {
	switch {
	case in.tx == nil:
		return shard, nil
	case in.shard != shard:
		return nil, fmt.Errorf("shard %d, the transaction is in shard %d: %w", shard.Number(), in.shard.Number(), ErrOtherShard)
	}
	return in.tx, nil
}
