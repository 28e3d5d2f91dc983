package ids

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/sql"
)

// UUID is the 16 bytes of a UUID, a type that pgx scans into.
type UUID = [16]byte

// Generator makes fresh IDs of type T: [shards.ID] for numbers, [UUID] for UUIDs.
type Generator[T any] interface {
	// NextIDs returns n IDs that no other call returns. An error may leave a gap.
	NextIDs(ctx context.Context, n int) ([]T, error)
}

// Querier runs a query: a [router.Shard], a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Function is a generator that calls an SQL function next_<name>_ids(n). It is safe for concurrent use if its Querier is.
type Function[T any] struct {
	db    Querier
	query string
}

// OnShard returns a generator that every shard has: interleaved, uuidv4 or uuidv7. The given shard makes its IDs. The name must
// be that of a generator in the map, because it becomes part of a statement.
func OnShard[T any](shard Querier, name string) *Function[T] {
	return newFunction[T](shard, sql.Generator{Name: name}.Function())
}

// newFunction returns the generator of an SQL function. The function returns one array, which costs a tenth of n rows.
func newFunction[T any](db Querier, name string) *Function[T] {
	return &Function[T]{db: db, query: fmt.Sprintf("select array(select %s($1))", name)}
}

// NextIDs calls the function. It returns the errors of the Querier.
func (f *Function[T]) NextIDs(ctx context.Context, n int) ([]T, error) {
	if err := checkCount(n); err != nil {
		return nil, err
	}
	rows, err := f.db.Query(ctx, f.query, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]T])
}

// maxCount is the largest number of IDs for one call: what fits into memory and into a message of Postgres.
const maxCount = 10_000_000

func checkCount(n int) error {
	if n < 0 || n > maxCount {
		return &shards.FieldError{Field: "n", Found: fmt.Sprint(n), Expected: fmt.Sprintf("0 to %d IDs", maxCount)}
	}
	return nil
}
