package router

import (
	"container/heap"
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

var errNotInOrder = errors.New("the rows are not in the order of the merge: order by in the statement, and less, must say the same")

// Merge asks every shard of a set and yields the first n rows of all in one order, or all rows if n is 0. less tells
// whether a comes before b, and the statement must return its rows in that order. Of rows that are equal by it, those of
// the lower shard come first. The statement may be limited to n rows, for no shard has more than n of the first n:
//
//	newest := func(a, b Photo) bool { return a.ID > b.ID }
//	q := router.Query[Photo]{SQL: `select * from photos order by id desc limit 20`, Scan: pgx.RowToStructByName[Photo]}
//	for photo, err := range router.Merge(ctx, r, r.All(), q, 20, newest) {
//
// Nothing is sent before the rows are ranged over; then the statements of a host are sent together, and anew for each
// range. The first row is yielded when all shards have answered. Their answers are in memory then, as bytes: a row is
// scanned when it is the next of its shard. ctx governs the asking. No connection is in use while rows are yielded, so
// that the body of the loop may use the router and leave at any row.
//
// An error is yielded last, after up to n rows of the other shards. It is one of those of [CollectByShard]. A shard is
// among the Failed also when a row of it does not scan or is out of order, which is seen when it comes to that row; those
// before it may have been yielded. With q.FirstError no row comes after a failure.
func Merge[T any](ctx context.Context, r *Router, set shards.Set, q Query[T], n int, less func(a, b T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		all, err := q.of(r, set)
		if err != nil {
			yield(none, err)
			return
		}
		j := newJob(ctx, FanoutMerge, q.Options, q.Reads)
		defer j.stop()
		answers := make([]pgx.Rows, len(all))
		j.ask(all, q.SQL, func(int) []any { return q.Args }, func(i int, rows pgx.Rows) error {
			answers[i] = rows
			return nil
		})
		m := &merge[T]{job: j, scan: q.Scan, less: less}
		defer m.close()
		for i, rows := range answers {
			if rows != nil {
				m.runs = append(m.runs, &run[T]{shard: all[i], rows: rows})
			}
		}
		if m.each(n, func(row T) bool { return yield(row, nil) }) {
			if err := j.result(all); err != nil {
				yield(none, err)
			}
		}
	}
}

// merge is a heap of the answers of shards, the one with the first row on top.
type merge[T any] struct {
	job  *job
	scan pgx.RowToFunc[T]
	less func(a, b T) bool
	runs []*run[T]
}

// run is the answer of one shard, and its row that is next to be yielded.
type run[T any] struct {
	shard Shard
	rows  pgx.Rows
	first T
}

func (m *merge[T]) Len() int { return len(m.runs) }

func (m *merge[T]) Less(i, j int) bool {
	a, b := m.runs[i], m.runs[j]
	if m.less(a.first, b.first) {
		return true
	}
	return a.shard.Number() < b.shard.Number() && !m.less(b.first, a.first)
}

func (m *merge[T]) Swap(i, j int) { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }

func (m *merge[T]) Push(any) { panic("bug: a merge does not grow") }

func (m *merge[T]) Pop() any {
	last := len(m.runs) - 1
	popped := m.runs[last]
	m.runs = m.runs[:last]
	return popped
}

// each yields up to n rows in order, and tells whether the consumer has taken all of them.
func (m *merge[T]) each(n int, yield func(T) bool) bool {
	begun := m.runs[:0]
	for _, r := range m.runs {
		if m.next(r) {
			begun = append(begun, r)
		}
	}
	m.runs = begun
	heap.Init(m)
	for yielded := 0; len(m.runs) > 0 && (n <= 0 || yielded < n) && !m.over(); yielded++ {
		top := m.runs[0]
		row := top.first
		if !yield(row) {
			return false
		}
		switch {
		case !m.next(top):
			heap.Pop(m)
		case m.less(top.first, row):
			m.fail(top, errNotInOrder)
			heap.Pop(m)
		default:
			heap.Fix(m, 0)
		}
	}
	return true
}

// over tells whether a failure has ended the merge.
func (m *merge[T]) over() bool { return m.job.opts.FirstError && len(m.job.failed) > 0 }

// next goes to the next row of a shard. There is none at the end of its rows and after an error.
func (m *merge[T]) next(r *run[T]) bool {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			m.fail(r, err)
		}
		return false
	}
	var err error
	if r.first, err = m.scan(r.rows); err != nil {
		m.fail(r, err)
		return false
	}
	return true
}

func (m *merge[T]) fail(r *run[T], err error) {
	r.rows.Close()
	m.job.fail(r.shard, err) // nobody else is at work on the job any more
}

func (m *merge[T]) close() {
	for _, r := range m.runs {
		r.rows.Close()
	}
}
