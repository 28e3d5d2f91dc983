package router_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A read whose lane has no connection goes down another lane, while the first one connects.
func TestReadGoesWhereAConnectionIs(t *testing.T) {
	t.Parallel()
	var stuck atomic.Bool
	b, ctx := setup(t, options{pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if stuck.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial(ctx, network, address)
		}
	}})
	read := func(n int) {
		t.Helper()
		var got int
		for range 4 { // a statement that is new goes alone
			if err := b.shard(t, n).QueryRow(ctx, `select count(*) from photos`).Scan(&got); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(0)
	stuck.Store(true)
	for n := range 8 {
		read(n)
	}
}
