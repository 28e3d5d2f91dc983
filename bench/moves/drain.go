package moves

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
)

// drain is the part in which all shards leave a host.
const drain = "drain"

// measureDrain moves all shards of a host to two others while services write to them.
func measureDrain(ctx context.Context, cfg Config) (*Drained, error) {
	cfg.Progress(drain)
	c, err := start(ctx, cfg, layout{shards: cfg.Shards, hosts: 3, first: true, tables: 1, rows: max(leastRows, cfg.Rows/cfg.Shards)})
	if err != nil {
		return nil, err
	}
	defer c.close()
	e, err := c.store.Load(ctx)
	if err != nil {
		return nil, err
	}
	l, by, err := c.loadAll(cfg.Callers)
	if err != nil {
		return nil, err
	}
	defer l.end()
	d := &Drained{Shards: cfg.Shards}
	if err := settle(ctx, l.shard); err != nil {
		return nil, err
	}
	_ = longest(l.shard) // of their first calls, which open connections
	if err := sleep(ctx, cfg.Turn); err != nil {
		return nil, err
	}
	d.Usual = longest(l.shard)
	began := time.Now()
	_, err = move.Run(ctx, move.RunConfig{
		Config:  move.Config{Map: e.Map, Store: c.store, Shards: e.Map.All(), LoginWithPassword: true, By: "bench"},
		Targets: balance.Drain(e.Map, e.Map.Hosts()[0].Name, nil, nil),
	})
	d.Seconds = time.Since(began).Seconds()
	if err != nil {
		return nil, err
	}
	if err := settle(ctx, l.shard); err != nil {
		return nil, err
	}
	d.Stall = longest(l.shard)
	l.end()
	return d, c.checkAll(ctx, d, by)
}

// loadAll has callers who go from shard to shard, as fast as they can. It also returns them by shard.
func (c *cluster) loadAll(callers int) (*load, [][]*caller, error) {
	ctx, stop := context.WithCancel(context.Background())
	l, by := &load{stop: stop}, make([][]*caller, c.shards)
	handles := make([]router.Shard, c.shards)
	for n := range handles {
		var err error
		if handles[n], err = c.router.ForShard(shards.Number(n)); err != nil {
			stop()
			return nil, nil, err
		}
		for range 2 * callers {
			by[n] = append(by[n], &caller{})
		}
		l.shard = append(l.shard, by[n]...)
	}
	for w := range callers {
		l.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				at := (i + w) % c.shards
				by[at][2*w].once(i+1, func(ctx context.Context, i int) (int64, error) { return insert(ctx, handles[at], 0, w+1, i) }, false)
			}
		})
		l.running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				at := (i + w) % c.shards
				by[at][2*w+1].once(i+1, func(ctx context.Context, i int) (int64, error) { return 0, read(ctx, handles[at], 0, i) }, false)
			}
		})
	}
	return l, by, nil
}

// checkAll looks for all rows where the shards are now.
func (c *cluster) checkAll(ctx context.Context, d *Drained, by [][]*caller) error {
	e, err := c.store.Load(ctx)
	if err != nil {
		return err
	}
	m := e.Map
	if left := m.NumbersOn(m.Hosts()[0].Name); len(left) > 0 {
		return fmt.Errorf("%d shards are still on %s", len(left), m.Hosts()[0].Name)
	}
	for _, host := range m.Hosts()[1:] {
		conn, err := c.connect(ctx, host)
		if err != nil {
			return err
		}
		for _, n := range m.NumbersOn(host.Name) {
			there, err := c.written(ctx, conn, m.Schema(n))
			if err != nil {
				_ = conn.Close(context.WithoutCancel(ctx))
				return err
			}
			d.add(by[n], there)
		}
		if err := conn.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}
