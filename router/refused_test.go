package router_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
)

// A COPY FROM STDIN as SQL would wait for rows until its context ends.
func TestCopyFromStdinIsRefused(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	s := b.shard(t, 9)
	for _, sql := range []string{"copy photos from stdin", "select 1; COPY photos (id) /* rows */ FROM STDIN (format csv)"} {
		_, alone := s.Exec(ctx, sql)
		inTx := s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		})
		var batch pgx.Batch
		batch.Queue(sql)
		for how, err := range map[string]error{"alone": alone, "in a transaction": inTx, "in a batch": s.SendBatch(ctx, &batch).Close()} {
			if err == nil || !strings.Contains(err.Error(), "use CopyFrom") {
				t.Errorf("%s, %s: %v", sql, how, err)
			}
		}
	}
	if _, err := s.Exec(ctx, `copy photos from '/dev/null'`); err != nil {
		t.Error(err)
	}
	b.isFree(ctx, t)
}

// panicTracer is a tracer that panics when it is told to.
type panicTracer struct{ now bool }

func (p *panicTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if p.now {
		panic("tracer")
	}
	return ctx
}

func (p *panicTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	if p.now {
		panic("tracer")
	}
}

// A panic of the caller's own code costs no place in the pool.
func TestPanicGivesConnectionBack(t *testing.T) {
	t.Parallel()
	tracer := &panicTracer{}
	b, ctx := setup(t, options{conns: 1, tracers: []pgx.QueryTracer{tracer}})
	s := b.shard(t, 9)
	var empty pgx.Batch
	empty.QueuedQueries = append(empty.QueuedQueries, nil)
	for name, call := range map[string]func(){
		"nil batch": func() { s.SendBatch(ctx, nil) },
		"nil query": func() { s.SendBatch(ctx, &empty) },
		"exec":      func() { tracer.now = true; _, _ = s.Exec(ctx, "update photos set id = id") },
		"query":     func() { tracer.now = true; _, _ = s.Query(ctx, "update photos set id = id returning id") },
		"begin":     func() { tracer.now = true; _, _ = s.Begin(ctx) },
		"commit":    func() { commitPanics(ctx, t, s, tracer, pgx.Tx.Commit) },
		"rollback":  func() { commitPanics(ctx, t, s, tracer, pgx.Tx.Rollback) },
		"in the answer": func() {
			rows, _ := s.Query(ctx, "update photos set id = id returning id")
			tracer.now = true
			rows.Close()
		},
	} {
		func() {
			defer func() {
				tracer.now = false
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
		b.isFree(ctx, t)
	}
}

func commitPanics(ctx context.Context, t *testing.T, s router.Shard, tracer *panicTracer, end func(pgx.Tx, context.Context) error) {
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tracer.now = true
	_ = end(tx, ctx)
}

// A ROLLBACK whose connection is lost has rolled back: nothing may have run.
func TestRollbackOnLostConnection(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	tx, err := b.shard(t, 9).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Conn().Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err == nil || errors.Is(err, router.ErrLost) || !strings.Contains(err.Error(), "rolled back") {
		t.Error(err)
	}
	b.isFree(ctx, t)
}

// A SELECT of a view that was replaced by one that writes, when more of the answer was handed out than fits into memory, fails once.
func TestLateWriteIsLearned(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{conns: 1})
	b.run(ctx, t, `create sequence shard_00009.late; create view shard_00009.writes_late as
select n::int8 as late, repeat('x', 1000) as x from generate_series(1, 4000) n`)
	s := b.shard(t, 9)
	read := func() error {
		rows, err := s.Query(ctx, "select * from writes_late")
		if err != nil {
			return err
		}
		for rows.Next() {
		}
		return rows.Err()
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	b.run(ctx, t, `create or replace view shard_00009.writes_late as
select case when n > 3000 then nextval('shard_00009.late') end as late, repeat('x', 1000) as x from generate_series(1, 4000) n`)
	if err := read(); err == nil || !strings.Contains(err.Error(), "from now on it runs as a write") {
		t.Errorf("the first time: %v", err)
	}
	if err := read(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	b.isFree(ctx, t)
}
