package router_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// recorder notes what a pool's tracer is told.
type recorder struct{ seen []string }

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	r.seen = append(r.seen, "query "+data.SQL)
	return ctx
}

func (r *recorder) TraceQueryEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	r.end("query", data.CommandTag.String(), data.Err)
}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	r.seen = append(r.seen, "batch")
	return ctx
}

func (r *recorder) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.end("batch query "+data.SQL, data.CommandTag.String(), data.Err)
}

func (r *recorder) TraceBatchEnd(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	r.end("batch", "", data.Err)
}

func (r *recorder) TracePrepareStart(ctx context.Context, _ *pgx.Conn, data pgx.TracePrepareStartData) context.Context {
	r.seen = append(r.seen, "prepare "+data.SQL)
	return ctx
}

func (r *recorder) TracePrepareEnd(_ context.Context, _ *pgx.Conn, data pgx.TracePrepareEndData) {
	r.end("prepare", "", data.Err)
}

func (r *recorder) end(what, tag string, err error) {
	if err != nil {
		tag = "error"
	}
	r.seen = append(r.seen, "end of "+what+": "+tag)
}

// A tracer sees the callers' statements and nothing of how they get to their shard.
func TestTracer(t *testing.T) {
	t.Parallel()
	var r recorder
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = &r }})
	s := b.shard(t, 9)
	expect := func(want ...string) {
		t.Helper()
		if !slices.Equal(r.seen, want) {
			t.Errorf("got %q\nwant %q", r.seen, want)
		}
		r.seen = nil
	}
	var n int
	_ = s.QueryRow(ctx, `select $1::int`, 1).Scan(&n)
	expect("query select $1::int", "prepare select $1::int", "end of prepare: ", "end of query: SELECT 1")
	_, _ = s.Exec(ctx, `select $1::int`, 1)
	expect("query select $1::int", "end of query: SELECT 1")
	_, _ = s.Exec(ctx, `select 1/0`)
	expect("query select 1/0", "end of query: error")
	_ = s.QueryRow(ctx, `select 1/$1`, 0).Scan(&n)
	expect("query select 1/$1", "prepare select 1/$1", "end of prepare: ", "end of query: error")
	var batch pgx.Batch
	batch.Queue(`select $1::int`, 1)
	batch.Queue(`select 1/$1`, 0)
	_ = s.SendBatch(ctx, &batch).Close()
	expect("batch", "end of batch query select $1::int: SELECT 1", "end of batch query select 1/$1: error", "end of batch: error")
	_ = s.Tx(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error { return tx.QueryRow(ctx, `select $1::int`, 1).Scan(&n) })
	expect("query begin", "end of query: BEGIN",
		"query select $1::int", "end of query: SELECT 1", "query commit", "end of query: COMMIT",
	)
}
