package router_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A connection that is lost before a statement could be sent on it fails no call.
func TestConnectionLostAtOnce(t *testing.T) {
	t.Parallel()
	var lost atomic.Int32
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
		cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			if lost.Add(1) > 2 {
				return nil
			}
			_ = conn.Close(ctx)
			_, err := conn.Exec(ctx, `select 1`)
			return err
		}
	}})
	if _, err := b.shard(t, 1).Exec(ctx, `update photos set title = 'here'`); err != nil {
		t.Error(err)
	}
	if lost.Load() < 3 {
		t.Error("no connection was lost")
	}
}
