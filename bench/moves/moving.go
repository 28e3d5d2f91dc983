package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// moving is a part in which one shard moves back and forth.
type moving struct {
	tables  int
	limited bool // by Config.Rate
	locked  bool // another session locks a row while the shard moves, once
}

func (p moving) run(ctx context.Context, b *bench) error {
	f := Figure{Part: b.part, Tables: p.tables, Moves: b.cfg.Moves}
	if p.locked {
		f.Moves = 1
	}
	c, err := start(ctx, b.cfg, layout{shards: 4, hosts: 2, tables: p.tables, rows: b.cfg.Rows})
	if err != nil {
		return err
	}
	defer c.close()
	r := rounds{cluster: c, cfg: b.cfg, moving: p, figure: &f}
	for n := range f.Moves {
		b.cfg.Progress(fmt.Sprintf("%s, move %d of %d", b.part, n+1, f.Moves))
		if err := r.round(ctx); err != nil {
			return err
		}
	}
	for _, values := range [][]float64{f.Stalls, f.Fences, f.Seconds, f.Bare, f.Ratios} {
		slices.Sort(values)
	}
	f.Usual, f.Copied = stats.Median(r.usual), stats.Median(r.copied)
	f.OtherUsual, f.OtherBare, f.OtherDuring = stats.Median(r.otherUsual), stats.Median(r.otherBare), stats.Median(r.otherDuring)
	f.OtherRatio = stats.MedianRatio(r.otherDuring, r.otherUsual)
	b.report.Parts = append(b.report.Parts, f)
	return nil
}

// rounds is the state of one part. Each round has its own load: while nothing moves, during a bare copy, and during a move.
type rounds struct {
	*cluster
	moving
	cfg    Config
	figure *Figure

	usual, copied                      []float64
	otherUsual, otherBare, otherDuring []float64
}

func (r *rounds) round(ctx context.Context) error {
	m, source, target, err := r.placement(ctx)
	if err != nil {
		return err
	}
	if err := checkpoint(ctx, m); err != nil {
		return err
	}
	l, err := r.load(r.cfg.Callers)
	if err != nil {
		return err
	}
	err = r.underLoad(ctx, l, m, source, target)
	l.end()
	if err != nil {
		return err
	}
	return r.check(ctx, l)
}

func (r *rounds) underLoad(ctx context.Context, l *load, m *shards.Map, source, target shards.Host) error {
	f := r.figure
	if err := l.usual(ctx, r.cfg.Turn); err != nil {
		return err
	}
	r.usual, r.otherUsual = append(r.usual, longest(l.shard)), append(r.otherUsual, p999(l.others))
	bare, err := r.bare(ctx, source, target)
	if err != nil {
		return fmt.Errorf("the bare copy: %w", err)
	}
	_ = longest(l.shard)
	r.otherBare = append(r.otherBare, p999(l.others))

	released := func() error { return nil }
	if r.locked {
		if released, err = r.lockRow(ctx, source); err != nil {
			return err
		}
	}
	took, err := r.move(ctx, m, target)
	if err := released(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	f.Stalls, r.otherDuring = append(f.Stalls, longest(l.shard)), append(r.otherDuring, p999(l.others))
	f.Seconds, f.Bare = append(f.Seconds, took.Seconds()), append(f.Bare, bare.Seconds())
	f.Ratios = append(f.Ratios, took.Seconds()/bare.Seconds())
	return nil
}

// move moves the shard, and returns how long that took.
func (r *rounds) move(ctx context.Context, m *shards.Map, target shards.Host) (time.Duration, error) {
	f := r.figure
	cfg := move.Config{Map: m, Store: r.store, Shards: shards.SetOf(moved), LoginWithPassword: true, By: "bench"}
	if r.limited {
		cfg.Rate = r.cfg.Rate
	}
	began := time.Now()
	var locked time.Time
	cfg.Events = func(e progress.Event) {
		switch {
		case e.Step == ledger.Copy && e.Kind == progress.Copied:
			r.copied = append(r.copied, time.Since(began).Seconds())
		case e.Step == ledger.Cutover && e.Kind == progress.Locked:
			locked = time.Now()
		case e.Step == ledger.Cutover && e.Kind == progress.Retrying:
			f.Tried++
		case e.Step == ledger.Fenced && e.Kind == progress.Begun:
			f.Fences = append(f.Fences, float64(time.Since(locked))/float64(time.Millisecond))
		}
	}
	_, err := move.Run(ctx, move.RunConfig{To: target.Name, Config: cfg})
	return time.Since(began), err
}

// lockRow locks a row that no caller writes, for Config.Hold. The returned function waits until it is released.
func (r *rounds) lockRow(ctx context.Context, source shards.Host) (released func() error, err error) {
	conn, err := pgx.Connect(ctx, source.ConnString())
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, `BEGIN; SELECT FROM `+schema+`.`+table(0)+` WHERE id = 1 FOR UPDATE`); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	var held sync.WaitGroup
	held.Go(func() {
		_ = sleep(ctx, r.cfg.Hold) // cut short if ctx ends
		_ = conn.Close(context.WithoutCancel(ctx))
	})
	return func() error { held.Wait(); return ctx.Err() }, nil
}
