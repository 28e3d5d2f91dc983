package many

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

// UnreadError lists the IDs that [GetMany] could not read. The rows of the other IDs come with it.
type UnreadError struct {
	IDs     []shards.ID          // in the order of the request, each once
	Partial *shards.PartialError // by their shards
}

// Error counts the IDs and says what [shards.PartialError.Error] does.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("%d IDs could not be read: %v", len(e.IDs), e.Partial)
}

// Unwrap returns Partial.
func (e *UnreadError) Unwrap() error { return e.Partial }

// GetMany finds rows by their IDs, each in the shard that made its ID. q.SQL is a statement that takes the IDs as an
// array, $1, and returns the ID as the first column of each row; q.Args follow as $2 and so on:
//
//	select id, owner, title from photos where id = any($1)
//
// Each shard that made some of the IDs receives the statement once, with those IDs, each once.
//
// The rows are in the order of ids. A repeated ID repeats its row. Several rows of one ID, as from a join, stay in the
// order in which they came. An ID without a row is skipped, without an error.
//
// ctx governs all of it, and no connection is in use when GetMany returns. The error is an [UnreadError]. It comes with
// the rows of all shards that are done, and wraps a [shards.PartialError] like that of [CollectByShard]. IDs that no shard
// can have made are unread too: Causes then contains [shards.ErrNoShard], and with q.FirstError nothing is sent. If
// q.Scan is nil, the error is a [shards.FieldError].
func GetMany[T any](ctx context.Context, r *router.Router, ids []shards.ID, q Query[T]) ([]T, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	known, errUnplaced := split(r, ids)
	all, of, err := byShard(known, r.ForID)
	if err != nil {
		return nil, err
	}
	found := make([]map[shards.ID][]T, len(all)) // nil for those that are not done
	j := newJob(ctx, r, KindGetMany, q.Options)
	defer j.stop()
	if errUnplaced != nil {
		j.causes = append(j.causes, errUnplaced)
	}
	if errUnplaced == nil || !q.FirstError {
		j.query(all, func(ctx context.Context, i int) error {
			rows, err := q.rows(ctx, all[i], append([]any{numbersOf(of[i])}, q.Args...))
			if err != nil {
				return err
			}
			byID, err := byFirstColumn(rows, of[i], q.Scan)
			if err == nil {
				found[i] = byID
			}
			return err
		})
	}

	at := make(map[shards.ID]map[shards.ID][]T, len(known))
	for i, some := range of {
		for _, id := range some {
			at[id] = found[i]
		}
	}
	var rows []T
	unread := &UnreadError{}
	counted := map[shards.ID]bool{}
	for _, id := range ids {
		if byID := at[id]; byID != nil {
			rows = append(rows, byID[id]...)
		} else if !counted[id] {
			counted[id] = true
			unread.IDs = append(unread.IDs, id)
		}
	}
	if err := j.result(all); !errors.As(err, &unread.Partial) {
		if errUnplaced == nil {
			return rows, nil
		}
		unread.Partial = &shards.PartialError{Done: setOf(all), Causes: j.causes}
	}
	return rows, unread
}

// split returns the IDs that have a shard, each once, and an error about the others.
func split(r *router.Router, ids []shards.ID) (known []shards.ID, errUnplaced error) {
	seen := make(map[shards.ID]bool, len(ids))
	without := 0
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if _, err := r.ForID(id); err == nil {
			known = append(known, id)
		} else if without++; without == 1 {
			errUnplaced = err
		}
	}
	if errUnplaced != nil {
		errUnplaced = fmt.Errorf("%d IDs belong to no shard: %w", without, errUnplaced)
	}
	return known, errUnplaced
}

// numbersOf returns IDs as a type that pgx encodes in every mode.
func numbersOf(ids []shards.ID) []int64 {
	numbers := make([]int64, len(ids))
	for i, id := range ids {
		numbers[i] = int64(id)
	}
	return numbers
}

// byFirstColumn groups rows by the ID in their first column. That ID must be among those requested: otherwise a statement
// that returns another column first would silently find nothing.
func byFirstColumn[T any](rows pgx.Rows, requested []shards.ID, scan pgx.RowToFunc[T]) (map[shards.ID][]T, error) {
	defer rows.Close()
	wanted := make(map[shards.ID]bool, len(requested))
	for _, id := range requested {
		wanted[id] = true
	}
	byID := make(map[shards.ID][]T, len(requested))
	var id shards.ID
	columns := make([]any, max(1, len(rows.FieldDescriptions())))
	columns[0] = &id
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return nil, fmt.Errorf("the first column must be the ID: %w", err)
		}
		if !wanted[id] {
			return nil, fmt.Errorf("the first column must be the ID: %d is none of those in $1", id)
		}
		row, err := scan(rows)
		if err != nil {
			return nil, err
		}
		byID[id] = append(byID[id], row)
	}
	return byID, rows.Err()
}
