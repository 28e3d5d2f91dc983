package many_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// Own may return a part of a longer slice.
func TestOwnArgumentsOfOneSlice(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	own := make([]any, shardCount)
	for i := range own {
		own[i] = int64(i)
	}
	got, err := many.Collect(ctx, b.Router, shards.SetOf(3, 4, 5), many.Query[int64]{
		SQL:  `select $1::bigint + 0 * $2::bigint from photos where id = 1`,
		Own:  func(n shards.Number) []any { return own[n : n+1] },
		Args: []any{int64(1000)}, Scan: pgx.RowTo[int64],
	})
	if want := []int64{3, 4, 5}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
