package router_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// A connection that is lost while its session is made has sent nothing of a caller's: the call is made again.
func TestLostWhileASessionIsMade(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	b, ctx := setup(t, options{conns: 1, pool: func(cfg *pgxpool.Config) {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err == nil && conns.Add(1) == 1 {
				conn = &deafConn{Conn: conn}
			}
			return conn, err
		}
	}})
	if _, err := b.shard(t, 1).Exec(ctx, `insert into photos (id, owner) values (next_id(), 1)`); err != nil {
		t.Error(err)
	}
	if conns.Load() < 2 {
		t.Errorf("%d connections were made, expected one that is lost and another", conns.Load())
	}
}

// deafConn is closed once the first query has been written to it.
type deafConn struct {
	net.Conn
	asked atomic.Bool // pgx reads beside a write that takes long
}

func (c *deafConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("pg_backend_pid")) {
		c.asked.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *deafConn) Read(b []byte) (int, error) {
	if c.asked.Load() {
		_ = c.Close()
	}
	return c.Conn.Read(b)
}
