package many_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// Rows in memory behave like rows on a connection, with each way to read them and in each exec mode.
func TestCollectReadsAsQuery(t *testing.T) {
	t.Parallel()
	type row struct {
		N     int64
		T     *string
		Texts []string
		J     map[string]any
	}
	statements := []string{
		`select n, case when n % 2 = 0 then 'text ' || n end as t, array['a', n::text] as texts, '{"a": [1, null]}'::jsonb as j
			from generate_series(1, 50) n`,
		`select 1.25::numeric as n, '\x00ff'::bytea, null::int, 'good'::mood, array['bad']::mood[], '(1,2)'::place, interval '1 day'`,
		`select n from generate_series(1, 0) n`,
		`select from generate_series(1, 3)`,
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b, ctx := setup(t, options{mode: mode})
			s := b.shard(t, 8)
			if _, err := s.Exec(ctx, `create type mood as enum ('bad', 'good'); create type place as (x int, y int)`); err != nil {
				t.Fatal(err)
			}
			for i, sql := range statements {
				asQuery(t, b, s, sql, pgx.RowToMap)
				asQuery(t, b, s, sql, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
				asQuery(t, b, s, sql, func(row pgx.CollectableRow) (int, error) { return len(row.RawValues()), nil })
				if i == 0 {
					asQuery(t, b, s, sql, pgx.RowToStructByName[row])
					asQuery(t, b, s, sql, pgx.RowToAddrOfStructByPos[row])
					asQuery(t, b, s, sql, func(r pgx.CollectableRow) (self wholeRow, err error) {
						err = r.Scan(&self)
						return self, err
					})
				}
			}
		})
	}
}

// wholeRow scans itself.
type wholeRow struct {
	n     int64
	title *string
}

func (w *wholeRow) ScanRow(rows pgx.Rows) error { return rows.Scan(&w.n, &w.title, nil, nil) }

func asQuery[T any](t *testing.T, b *testBundle, s router.Shard, sql string, scan pgx.RowToFunc[T]) {
	t.Helper()
	rows, _ := s.Query(t.Context(), sql) // rows.Err returns the same error
	want, err := pgx.CollectRows(rows, scan)
	if err != nil {
		t.Fatal(err)
	}
	got, err := many.Collect(t.Context(), b.Router, shards.SetOf(s.Number()), many.Query[T]{SQL: sql, Scan: scan})
	if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, %v, want %v", sql, got, err, want)
	}
}

// After an error in one row no other row is read, as with pgx.
func TestCollectEndsAtAnError(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	calls := 0
	_, err := many.Collect(ctx, b.Router, shards.SetOf(1), many.Query[int]{
		SQL: `select 'x' from generate_series(1, 5)`,
		Scan: func(row pgx.CollectableRow) (n int, _ error) {
			calls++
			_ = row.Scan(&n) // the error is dropped here,
			return n, nil    // but it still ends the rows
		},
	})
	if calls != 1 || err == nil || !strings.Contains(err.Error(), "shard 1 (shard_00001 on pg-a): can't scan") {
		t.Errorf("%d calls, %v", calls, err)
	}
	_, err = many.Collect(ctx, b.Router, shards.SetOf(1), many.Query[int]{
		SQL: `select 1, 2`, Scan: pgx.RowTo[int],
	})
	if err == nil || !strings.Contains(err.Error(), "number of field descriptions") {
		t.Errorf("too many columns: %v", err)
	}
}

// Rows in memory can use types that are registered on the connections.
func TestCollectRegisteredTypes(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	b.run(ctx, t, `create type public.place as (x int, y int)`)
	b, ctx = setup(t, options{on: b, pool: func(cfg *pgxpool.Config) {
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			place, err := conn.LoadType(ctx, "public.place")
			if err == nil {
				conn.TypeMap().RegisterType(place)
			}
			return err
		}
	}})
	type place struct{ X, Y int }
	got, err := many.Collect(ctx, b.Router, parse(t, "1-2"), many.Query[place]{
		SQL: `select (owner, 7)::public.place from photos`, Scan: pgx.RowTo[place],
	})
	if want := []place{{1, 7}, {2, 7}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
