package objects

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/shards"
)

// Update reads an object, has change make something else of it, and writes it back, in one transaction that keeps others from
// changing the object meanwhile, and in two messages. It returns the object as it is then. Fields of the document that T does
// not have stay.
//
// The transaction is run again after a deadlock and when the shard has moved, so change may be called more than once, each
// time with what is there by then. Its error ends the update. The others are those of [Type.Get] and of [router.Retry.Tx];
// after [router.ErrOutcomeUnknown] the change may have been made.
func (t *Type[T]) Update(ctx context.Context, id shards.ID, change func(*T) error) (Object[T], error) {
	p, err := locate(t.r, t.t, id)
	if err != nil {
		return Object[T]{}, err
	}
	defer t.forget(ctx, id)
	var o Object[T]
	err = router.Retry{}.Tx(together.BeginLate(ctx), p.Shard, pgx.TxOptions{}, func(tx pgx.Tx) error {
		var err error
		if o, err = t.scan(id, tx.QueryRow(ctx, t.lock, p.Local)); err != nil {
			return err
		}
		if err := change(&o.Fields); err != nil {
			return err
		}
		text, err := encode(o.Fields)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, t.update, together.Last{}, p.Local, t.known, text).Scan(&o.At)
	})
	if err != nil {
		return Object[T]{}, err
	}
	return o, nil
}

// Delete marks an object as deleted, which readers then leave out. [Type.Undelete] takes the mark away. The error is
// [ErrNotFound] for one that is not there or is deleted already, or as of [Type.Get].
func (t *Type[T]) Delete(ctx context.Context, id shards.ID) error { return t.exec(ctx, t.mark, id) }

// Undelete brings back an object that was deleted. The error is [ErrNotFound] for one that is not there or is not deleted,
// or as of [Type.Get].
func (t *Type[T]) Undelete(ctx context.Context, id shards.ID) error {
	return t.exec(ctx, t.unmark, id)
}

// Purge removes the row of an object, deleted or not, for good. Its ID is not used again. Errors are those of
// [Type.Delete].
func (t *Type[T]) Purge(ctx context.Context, id shards.ID) error { return t.exec(ctx, t.purge, id) }

// exec runs a statement that changes the row of an object.
func (t *Type[T]) exec(ctx context.Context, query string, id shards.ID) error {
	p, err := locate(t.r, t.t, id)
	if err != nil {
		return err
	}
	defer t.forget(ctx, id)
	tag, err := p.Shard.Exec(ctx, query, p.Local)
	if err == nil && tag.RowsAffected() == 0 {
		err = notFound(id)
	}
	return err
}
