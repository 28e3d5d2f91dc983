package router_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A read whose lane has no connection goes down another lane, while the first one connects.
func TestReadGoesWhereAConnectionIs(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, options{})
	var err error
	for range 5 { // on a busy machine the statement may count as slow, and so want a lane to itself
		if err = readsBesideDial(ctx, t, b); err == nil {
			return
		}
	}
	t.Error(err)
}

// readsBesideDial reads in some shards while no further connection can be made.
func readsBesideDial(ctx context.Context, t *testing.T, on *testBundle) error {
	stuck := make(chan struct{})
	var connected atomic.Bool
	b, _ := setup(t, options{on: on, pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if connected.Load() {
				<-stuck
			}
			return dial(ctx, network, address)
		}
	}})
	defer b.Close()
	defer close(stuck)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for n := range 8 {
		for range 4 { // a statement that is new goes alone
			var got int
			if err := b.shard(t, n).QueryRow(ctx, `select count(*) from photos`).Scan(&got); err != nil {
				return err
			}
		}
		connected.Store(true)
	}
	return nil
}

// At the start each call wants a connection. All go on with the first one there is, while the others take their time.
func TestFirstConnectionServesAll(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	var dials atomic.Int32
	b, ctx := setup(t, options{pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) > 1 {
				<-stuck
			}
			return dial(ctx, network, address)
		}
	}})
	defer close(stuck)
	var calls sync.WaitGroup
	for n := range 8 {
		calls.Go(func() {
			var owner int
			if err := b.shard(t, n).QueryRow(ctx, `select owner from photos`).Scan(&owner); err != nil || owner != n {
				t.Errorf("read in shard %d: owner %d, %v", n, owner, err)
			}
		})
		calls.Go(func() {
			if _, err := b.shard(t, n).Exec(ctx, `update photos set title = 'new'`); err != nil {
				t.Errorf("write in shard %d: %v", n, err)
			}
		})
	}
	calls.Wait()
}
