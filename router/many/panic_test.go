package many_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// A panic in what a caller gives is the caller's: it ends the work, not the process, and no connection stays with it.
func TestPanics(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2})
	scan := many.Query[int64]{SQL: `select owner from photos order by id`, Scan: func(pgx.CollectableRow) (int64, error) { panic(errBoom) }}
	own := many.Query[int64]{SQL: `select $1::bigint`, Scan: pgx.RowTo[int64], Own: func(n shards.Number) []any {
		if n == 3 {
			panic(errBoom)
		}
		return []any{int64(n)}
	}}
	var ids []shards.ID
	for n := range b.All().All() {
		id, err := many.Collect(ctx, b.Router, shards.SetOf(n), many.Query[shards.ID]{SQL: `select id from photos`, Scan: pgx.RowTo[shards.ID]})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id...)
	}
	calls := map[string]func(){
		"Each": func() {
			_ = many.Each(ctx, b.Router, b.All(), many.Options{}, func(context.Context, router.Shard) error { panic(errBoom) })
		},
		"Collect":      func() { _, _ = many.Collect(ctx, b.Router, b.All(), scan) },
		"Collect, Own": func() { _, _ = many.Collect(ctx, b.Router, b.All(), own) },
		"GetMany": func() {
			_, _ = many.GetMany(ctx, b.Router, ids, many.Query[int64]{SQL: `select id from photos where id = any($1)`, Scan: scan.Scan})
		},
		"Stream": func() {
			for _, err := range many.Stream(ctx, b.Router, b.All(), scan) {
				t.Errorf("a row, error %v", err)
			}
		},
		"Merge": func() {
			for _, err := range many.Merge(ctx, b.Router, b.All(), scan, 0, func(x, y int64) bool { return x < y }) {
				t.Errorf("a row, error %v", err)
			}
		},
	}
	for name, call := range calls {
		for range 10 {
			func() {
				defer func() {
					if err, ok := recover().(error); !ok || !errors.Is(err, errBoom) {
						t.Errorf("%s: panicked with %v", name, err)
					}
				}()
				call()
				t.Errorf("%s: no panic", name)
			}()
		}
	}
	if all, err := many.Collect(ctx, b.Router, b.All(), many.Query[int64]{SQL: `select 1::bigint`, Scan: pgx.RowTo[int64]}); err != nil || len(all) != b.All().Len() || !slices.Contains(all, 1) {
		t.Errorf("afterwards: %d rows, %v", len(all), err)
	}
}
