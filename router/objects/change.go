package objects

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/internal/together"
	"github.com/kiloshard/kiloshard/shards"
)

// Update reads an object, calls change, and writes the result back, in one transaction and two round trips. It locks the row, so
// that nothing else changes the object in between. It returns the new object. Only what change has changed is written, also in objects
// within objects: fields that T does not have stay, and so do numbers that T cannot hold. A list is written as a whole.
//
// After a deadlock, or when the shard has moved, the transaction runs again: change may be called more than once, each time with
// the present object. If change returns an error, Update returns it and writes nothing. Update also returns the errors of
// [Type.Get] and [router.Retry.Tx]. After [router.ErrOutcomeUnknown] the change may have been made.
func (t *Type[T]) Update(ctx context.Context, id shards.ID, change func(*T) error) (Object[T], error) {
	p, err := locate(t.r, t.t, id)
	if err != nil {
		return Object[T]{}, err
	}
	defer t.forget(ctx, id)
	on, err := t.in.on(p.Shard)
	switch {
	case err != nil:
		return Object[T]{}, err
	case t.in.tx != nil:
		o, err := t.change(ctx, ctx, on, id, p.Local, change)
		if err != nil {
			return Object[T]{}, err
		}
		return o, nil
	}
	var o Object[T]
	err = router.Retry{}.Tx(together.BeginLate(ctx), p.Shard, pgx.TxOptions{}, func(tx pgx.Tx) (err error) {
		o, err = t.change(ctx, together.Commit(ctx), tx, id, p.Local, change)
		return err
	})
	if err != nil {
		return Object[T]{}, err
	}
	return o, nil
}

// change updates an object in a transaction. last is the context of its last statement.
func (t *Type[T]) change(ctx, last context.Context, tx sender, id shards.ID, local int64, change func(*T) error) (Object[T], error) {
	o, document, err := t.scan(id, tx.QueryRow(ctx, t.lock, local))
	if err != nil {
		return o, err
	}
	before, err := encode(o.Fields)
	if err != nil {
		return o, err
	}
	if err := change(&o.Fields); err != nil {
		return o, err
	}
	after, err := encode(o.Fields)
	if err != nil {
		return o, err
	}
	text, err := merged(document, []byte(before), []byte(after))
	if err != nil {
		return o, err
	}
	return o, tx.QueryRow(last, t.update, local, text).Scan(&o.At)
}

// Delete marks an object as deleted. Reads leave it out, and [Type.Undelete] removes the mark. It returns [ErrNotFound] for an
// object that does not exist or is already deleted, and otherwise the errors of [Type.Get].
func (t *Type[T]) Delete(ctx context.Context, id shards.ID) error { return t.exec(ctx, t.mark, id) }

// Undelete restores a deleted object. It returns [ErrNotFound] for an object that does not exist or is not deleted, and otherwise
// the errors of [Type.Get].
func (t *Type[T]) Undelete(ctx context.Context, id shards.ID) error {
	return t.exec(ctx, t.unmark, id)
}

// Purge removes the row of an object, deleted or not. Its ID is not used again. It returns [ErrNotFound] for an object that
// does not exist, and otherwise the errors of [Type.Get].
func (t *Type[T]) Purge(ctx context.Context, id shards.ID) error { return t.exec(ctx, t.purge, id) }

// exec runs a statement that changes the row of an object.
func (t *Type[T]) exec(ctx context.Context, query string, id shards.ID) error {
	p, err := locate(t.r, t.t, id)
	if err != nil {
		return err
	}
	on, err := t.in.on(p.Shard)
	if err != nil {
		return err
	}
	defer t.forget(ctx, id)
	tag, err := on.Exec(ctx, query, p.Local)
	if err == nil && tag.RowsAffected() == 0 {
		err = notFound(id)
	}
	return err
}
