package moves

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
)

// drain moves all shards of a host to two others while callers write to them.
func drain(ctx context.Context, b *bench) error {
	c, err := start(ctx, b.cfg, layout{shards: b.cfg.Shards, hosts: 3, first: true, tables: 1, rows: max(leastRows, b.cfg.Rows/b.cfg.Shards)})
	if err != nil {
		return err
	}
	defer c.close()
	e, err := c.store.Load(ctx)
	if err != nil {
		return err
	}
	l, by, err := c.loadAll(b.cfg.Callers)
	if err != nil {
		return err
	}
	defer l.end()
	if err := l.usual(ctx, b.cfg.Turn); err != nil {
		return err
	}
	d := &Drained{Shards: b.cfg.Shards, Usual: longest(l.shard)}
	began := time.Now()
	if _, err := move.Run(ctx, move.RunConfig{
		Config:  move.Config{Map: e.Map, Store: c.store, Shards: e.Map.All(), LoginWithPassword: true, By: "bench"},
		Targets: balance.Drain(e.Map, e.Map.Hosts()[0].Name, nil, nil),
	}); err != nil {
		return err
	}
	d.Seconds = time.Since(began).Seconds()
	if err := l.settle(ctx); err != nil {
		return err
	}
	d.Stall = longest(l.shard)
	l.end()
	b.report.Drain = d
	return c.checkAll(ctx, d, by)
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
		if err := c.checkHost(ctx, m, host, d, by); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) checkHost(ctx context.Context, m *shards.Map, host shards.Host, d *Drained, by [][]*caller) error {
	conn, err := pgx.Connect(ctx, host.ConnString())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, n := range m.NumbersOn(host.Name) {
		found, err := c.written(ctx, conn, m.Schema(n))
		if err != nil {
			return err
		}
		d.add(by[n], found)
	}
	return nil
}
