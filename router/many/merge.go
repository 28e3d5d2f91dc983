package many

import (
	"container/heap"
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

var errNotInOrder = errors.New("the rows are not in merge order: the order by of the statement and less must agree")

// Merge queries every shard of a set and yields the first n rows of all in one order, or all rows if n is 0. less reports
// whether a comes before b, and the statement must return its rows in that order. Equal rows come in the order of their
// shards. The statement may be limited to n rows:
//
//	newest := func(a, b Photo) bool { return a.ID > b.ID }
//	q := many.Query[Photo]{SQL: `select * from photos order by id desc limit 20`, Scan: pgx.RowToStructByName[Photo]}
//	for photo, err := range many.Merge(ctx, r, r.All(), q, 20, newest) {
//
// Each range over the rows sends the statements. The first row comes when all shards have answered; up to n rows of each
// are in memory then. ctx governs the queries. No connection is in use while rows are yielded, so the body of the loop may
// use the router, and may break at any row.
//
// An error comes last, after up to n rows of the other shards. [CollectByShard] lists the errors. A shard also fails
// when the merge reaches a row of it that does not scan or is out of order; the rows before it may have been yielded.
// With q.FirstError no row follows a failure.
func Merge[T any](ctx context.Context, r *router.Router, set shards.Set, q Query[T], n int, less func(a, b T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		all, err := q.shards(r, set)
		if err != nil {
			yield(none, err)
			return
		}
		j := newJob(ctx, r, KindMerge, q.Options)
		defer j.stop()
		answers := make([]*run[T], len(all))
		j.query(all, func(ctx context.Context, i int) error {
			rows, err := q.rows(ctx, all[i], q.argsOf(all[i]))
			if err != nil {
				return err
			}
			answers[i], err = readRun(rows, q.Scan, n)
			return err
		})
		m := &merge[T]{job: j, less: less}
		for i, answer := range answers {
			if answer != nil {
				answer.shard = all[i]
				m.runs = append(m.runs, answer)
			}
		}
		if m.each(n, func(row T) bool { return yield(row, nil) }) {
			if err := j.result(all); err != nil {
				yield(none, err)
			}
		}
	}
}

// run is the rest of one shard's answer, the next row first.
type run[T any] struct {
	shard router.Shard
	rows  []T
	err   error // why the row after them does not scan; nil if it does
}

// readRun reads the first n rows of an answer, or all if n is 0.
func readRun[T any](rows pgx.Rows, scan pgx.RowToFunc[T], n int) (*run[T], error) {
	r := &run[T]{}
	defer rows.Close() // also if scan panics
	for (n <= 0 || len(r.rows) < n) && r.err == nil && rows.Next() {
		row, err := scan(rows)
		if err != nil {
			r.err = err
			break
		}
		r.rows = append(r.rows, row)
	}
	rows.Close()
	if err := rows.Err(); err != nil && r.err == nil {
		return nil, err
	}
	return r, nil
}

// merge is a heap of the answers of shards, the one with the first row on top.
type merge[T any] struct {
	job  *job
	less func(a, b T) bool
	runs []*run[T]
}

func (m *merge[T]) Len() int { return len(m.runs) }

func (m *merge[T]) Less(i, j int) bool {
	a, b := m.runs[i], m.runs[j]
	if m.less(a.rows[0], b.rows[0]) {
		return true
	}
	return a.shard.Number() < b.shard.Number() && !m.less(b.rows[0], a.rows[0])
}

func (m *merge[T]) Swap(i, j int) { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }

func (m *merge[T]) Push(any) { panic("bug: a merge does not grow") }

func (m *merge[T]) Pop() any {
	last := len(m.runs) - 1
	popped := m.runs[last]
	m.runs = m.runs[:last]
	return popped
}

// each yields up to n rows in order, and reports whether the consumer took all of them.
func (m *merge[T]) each(n int, yield func(T) bool) bool {
	rest := m.runs[:0]
	for _, r := range m.runs {
		if m.more(r) {
			rest = append(rest, r)
		}
	}
	m.runs = rest
	heap.Init(m)
	for yielded := 0; len(m.runs) > 0 && (n <= 0 || yielded < n) && !m.over(); yielded++ {
		top := m.runs[0]
		row := top.rows[0]
		if !yield(row) {
			return false
		}
		top.rows = top.rows[1:]
		switch {
		case !m.more(top):
			heap.Pop(m)
		case m.less(top.rows[0], row):
			m.job.fail(top.shard, errNotInOrder) // no other goroutine uses the job now
			heap.Pop(m)
		default:
			heap.Fix(m, 0)
		}
	}
	return true
}

// over reports whether a failure has ended the merge.
func (m *merge[T]) over() bool { return m.job.opts.FirstError && len(m.job.failed) > 0 }

// more reports whether a shard has a next row. If that row does not scan, the shard has failed.
func (m *merge[T]) more(r *run[T]) bool {
	if len(r.rows) > 0 {
		return true
	}
	if r.err != nil {
		m.job.fail(r.shard, r.err)
	}
	return false
}
