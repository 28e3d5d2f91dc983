package entities_test

import (
	"context"
	"math"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/router/entities"
	"github.com/kiloshard/kiloshard/router/internal/routertest"
	"github.com/kiloshard/kiloshard/shards"
)

// A cleaner that finds nothing to do sends one message to each host, however many shards it has.
func TestIdleCleaner(t *testing.T) {
	t.Parallel()
	b, ctx := setup(t, definition)
	var messages atomic.Int64
	r, err := router.New(ctx, router.Config{Map: b.r.Map(), Failover: router.Failover{FailAfter: routertest.Limit}, Pool: func(_ shards.Host, cfg *pgxpool.Config) error {
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return &countedConn{Conn: conn, messages: &messages}, err
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	s := (&bundle{r: r}).open(t, definition)
	least := int64(math.MaxInt64) // some passes open connections and prepare statements
	for range 5 {
		messages.Store(0)
		if err := s.Clean(ctx, entities.CleanOptions{Once: true, WalkPerSecond: -1}); err != nil {
			t.Fatal(err)
		}
		least = min(least, messages.Load())
	}
	if least != 2 {
		t.Errorf("%d messages for %d shards on 2 hosts", least, shardCount)
	}
}

// countedConn counts messages. A message is all that is sent before the server answers.
type countedConn struct {
	net.Conn
	messages *atomic.Int64
	sent     atomic.Bool
}

func (c *countedConn) Write(p []byte) (int, error) {
	if !c.sent.Swap(true) {
		c.messages.Add(1)
	}
	return c.Conn.Write(p)
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.sent.Store(false)
	}
	return n, err
}
