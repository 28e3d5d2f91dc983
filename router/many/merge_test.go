package many_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

func newest(a, b photo) bool { return a.ID > b.ID }

func byOwner(a, b photo) bool { return a.Owner < b.Owner }

// take ranges over all rows. It fails the test if anything follows an error.
func take(t testing.TB, seq iter.Seq2[photo, error]) (rows []photo, last error) {
	t.Helper()
	for row, err := range seq {
		if last != nil {
			t.Errorf("after the error came %v, %v", row, err)
		}
		if last = err; err == nil {
			rows = append(rows, row)
		}
	}
	return rows, last
}

// Merge returns the first n of all rows, sorted.
func TestMergeIsSortAndCut(t *testing.T) {
	t.Parallel()
	db, ctx := setup(t, options{hosts: 2})
	all := db.fill(ctx, t)
	orders := []struct {
		name, sql string
		less      func(a, b photo) bool
		compare   func(a, b photo) int
	}{
		{"newest", `id desc`, newest, func(a, b photo) int { return -cmp.Compare(a.ID, b.ID) }},
		{"owner, many equal", `owner, id`, byOwner, func(a, b photo) int { return cmp.Compare(a.Owner, b.Owner) }},
	}
	for _, order := range orders {
		for _, mode := range modes {
			t.Run(order.name+" "+mode, func(t *testing.T) {
				b, ctx := setup(t, options{on: db, conns: 2, mode: mode})
				rapid.Check(t, func(rt *rapid.T) {
					number := rapid.Map(rapid.Int32Range(0, shardCount-1), func(n int32) shards.Number { return shards.Number(n) })
					set := shards.SetOf(rapid.SliceOfN(number, 0, 12).Draw(rt, "set")...)
					n := rapid.IntRange(0, 40).Draw(rt, "n")
					q := photosOf(`true`)
					q.PerHost = rapid.IntRange(0, 3).Draw(rt, "PerHost")
					q.SQL, q.Args = `select id, owner, title from photos order by `+order.sql+` limit nullif($1, 0)`, []any{n}
					got, err := take(t, many.Merge(ctx, b.Router, set, q, n, order.less))
					if err != nil {
						rt.Fatal(err)
					}
					want := rowsOf(all, set)
					slices.SortStableFunc(want, order.compare)
					if n > 0 {
						want = want[:min(n, len(want))]
					}
					if !slices.Equal(got, want) {
						rt.Errorf("got %v, want %v", got, want)
					}
				})
				b.allFree(ctx, t, 2)
			})
		}
	}
}

// A loop that breaks at any row holds no connection afterward, and its body may use the router's only connection.
func TestMergeStopsEarly(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{hosts: 2, conns: 1})
	rows := rowsOf(b.fill(ctx, t), b.All())
	seq := many.Merge(ctx, b.Router, b.All(), photosOf(`true`), 0, func(a, b photo) bool { return a.ID < b.ID })
	slices.SortFunc(rows, func(a, b photo) int { return cmp.Compare(a.ID, b.ID) })
	for _, stop := range []int{0, 1, 100} {
		i := 0
		for row, err := range seq { // each range sends the statements again
			if err != nil || row != rows[i] {
				t.Fatalf("row %d: got %v, %v, want %v", i, row, err, rows[i])
			}
			b.isFree(ctx, t)
			if i++; i > stop {
				break
			}
		}
	}
	func() {
		defer func() { _ = recover() }()
		for _, err := range seq {
			panic(err)
		}
	}()
	b.isFree(ctx, t)
}

func TestMergePartly(t *testing.T) {
	t.Parallel()
	b, ctx := withDeadHost(t, options{})
	all := make([][]photo, shardCount)
	for n := range 32 {
		all[n] = []photo{{1, int64(n), ""}}
	}
	b.run(ctx, t, `drop table shard_00005.photos`)
	q := photosOf(`true`)
	q.SQL = `select id, owner, '' as title from photos`
	q.PerHost = 1
	rows, err := take(t, many.Merge(ctx, b.Router, b.All(), q, 10, byOwner))
	p := isPartial(t, err, b.All(), "0-4,6-31", "5,32", "33-63")
	if want := rowsOf(all, p.Done)[:10]; !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
	isHostError(t, err, "pg-b")

	q.FirstError = true
	rows, err = take(t, many.Merge(ctx, b.Router, parse(t, "3-9"), q, 10, byOwner))
	if isPartial(t, err, parse(t, "3-9"), "3-4", "5", "6-9"); len(rows) > 0 {
		t.Errorf("after a failure came %v", rows)
	}
}

// A shard with a bad row in the middle is reported as failed, not as done.
func TestMergeGoesWrong(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	set := parse(t, "1-3")
	tests := []struct {
		name, value, want string
		count             int
	}{
		{"out of order", `case when owner = 2 and n = 3 then 1 else n end`, "not in merge order", 8},
		{"does not scan", `case when owner = 2 and n = 3 then null else n end`, "can't scan", 8},
		{"does not scan at once", `case when owner = 2 then null else n end`, "can't scan", 6},
	}
	less := func(a, b int) bool { return a < b }
	for _, test := range tests {
		q := many.Query[int]{SQL: `select ` + test.value + ` from photos, generate_series(1, 3) n order by n + 0`, Scan: pgx.RowTo[int]}
		count := 0
		var last error
		for _, err := range many.Merge(ctx, b.Router, set, q, 0, less) {
			if last = err; err == nil {
				count++
			}
		}
		p := isPartial(t, last, set, "1,3", "2", "")
		if count != test.count || !strings.Contains(p.Failed[0].Error(), test.want) {
			t.Errorf("%s: %d rows, %v", test.name, count, last)
		}

		q.FirstError = true
		count, last = 0, nil
		for _, err := range many.Merge(ctx, b.Router, set, q, 0, less) {
			if last = err; err == nil {
				count++
			}
		}
		p = isPartial(t, last, set, "1,3", "2", "")
		if count >= test.count || len(p.Causes) != 1 || !strings.Contains(p.Causes[0].Error(), test.want) {
			t.Errorf("%s, first error: %d rows, %v", test.name, count, last)
		}
	}
	b.allFree(ctx, t, 4)
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	if rows, err := take(t, many.Merge(ctx, b.Router, shards.SetOf(99), photosOf(`true`), 0, newest)); !errors.Is(err, shards.ErrNoShard) || len(rows) > 0 {
		t.Errorf("a shard too many: %v, %v", rows, err)
	}
	field := new(shards.FieldError)
	if rows, err := take(t, many.Merge(ctx, b.Router, b.All(), many.Query[photo]{}, 0, newest)); !errors.As(err, &field) || len(rows) > 0 {
		t.Errorf("without Scan: %v, %v", rows, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	rows, err := take(t, many.Merge(ended, b.Router, b.All(), photosOf(`true`), 0, newest))
	if isPartial(t, err, b.All(), "", "", "0-63"); len(rows) > 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", rows, err)
	}
}
