package many_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/many"
	"github.com/kiloshard/kiloshard/shards"
)

// fanouts is a tracer of work over many shards, and of nothing else.
type fanouts struct{ last atomic.Pointer[many.Work] }

func (f *fanouts) TraceMany(_ context.Context, of many.Work) { f.last.Store(&of) }

func (f *fanouts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (f *fanouts) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A tracer gets the result of each work over many shards.
func ExampleTracer() {
	ctx := context.Background()
	plain := exampleRouter(ctx)
	defer plain.Close()
	tracer := &fanouts{}
	r, err := router.New(ctx, router.Config{Map: plain.Map(), Tracers: []pgx.QueryTracer{tracer}})
	if err != nil {
		panic(err)
	}
	defer r.Close()

	q := many.Query[string]{SQL: `select title from photos`, Scan: pgx.RowTo[string]}
	if _, err := many.Collect(ctx, r, r.All(), q); err != nil {
		panic(err)
	}
	of := tracer.last.Load()
	fmt.Println(of.Kind, of.Shards == r.All().Len(), of.Failed, of.NotAttempted, of.Took > 0)
	// Output: collect true 0 0 true
}

// The tracer gets failed and not attempted shards separately, and nothing for an empty set.
func TestFanoutTold(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	plain := exampleRouter(ctx)
	defer plain.Close()
	tracer := &fanouts{}
	r, err := router.New(ctx, router.Config{Map: plain.Map(), Tracers: []pgx.QueryTracer{tracer}, Failover: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := many.Each(ctx, r, shards.Set{}, many.Options{}, nil); err != nil || tracer.last.Load() != nil {
		t.Errorf("no shards: %v, %+v", err, tracer.last.Load())
	}
	bad := errors.New("bad")
	err = many.Each(ctx, r, r.All(), many.Options{PerHost: 1, FirstError: true}, func(_ context.Context, s router.Shard) error {
		if s.Number() == 2 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) {
		t.Fatal(err)
	}
	of := tracer.last.Load()
	if of == nil || of.Kind != many.KindEach || of.Shards != r.All().Len() || of.Failed != 1 || of.NotAttempted != of.Shards-3 {
		t.Errorf("got %+v, expected 2 done and 1 failed", of)
	}
}
