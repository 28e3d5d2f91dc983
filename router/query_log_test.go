package router_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// queryLog notes which statements a router has begun. It is safe for concurrent use.
type queryLog struct {
	mu      sync.Mutex
	queries []string
	more    chan struct{} // closed when there is another one; nil if nobody waits
}

// watch is for options.pool.
func (l *queryLog) watch(cfg *pgxpool.Config) { cfg.ConnConfig.Tracer = l }

func (l *queryLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queries = append(l.queries, data.SQL)
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
	return ctx
}

func (l *queryLog) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// count returns how many statements have begun that start so.
func (l *queryLog) count(start string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, query := range l.queries {
		if strings.HasPrefix(query, start) {
			n++
		}
	}
	return n
}

// await waits until so many statements have begun that start so.
func (l *queryLog) await(ctx context.Context, t testing.TB, start string, n int) {
	t.Helper()
	for {
		l.mu.Lock()
		if l.more == nil {
			l.more = make(chan struct{})
		}
		more := l.more
		l.mu.Unlock()
		if l.count(start) >= n {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%d statements %q, expected %d: %v", l.count(start), start, n, ctx.Err())
		}
	}
}
