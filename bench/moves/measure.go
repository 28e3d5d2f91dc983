package moves

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kiloshard/kiloshard/bench/stats"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// measure measures one part.
func measure(ctx context.Context, cfg Config, p moving) (Figure, error) {
	f := Figure{Part: p.name, Tables: p.tables, Moves: cfg.Moves}
	if p.lock {
		f.Moves = 1
	}
	cfg.Progress(p.name)
	c, err := start(ctx, cfg, layout{shards: 4, hosts: 2, tables: p.tables, rows: cfg.Rows})
	if err != nil {
		return f, err
	}
	defer c.close()
	r := rounds{cluster: c, cfg: cfg, part: p, figure: &f}
	for n := range f.Moves {
		cfg.Progress(fmt.Sprintf("%s, move %d of %d", p.name, n+1, f.Moves))
		if err := r.round(ctx); err != nil {
			return f, err
		}
	}
	for _, values := range [][]float64{f.Stalls, f.Fences, f.Seconds, f.Bare, f.Ratios} {
		slices.Sort(values)
	}
	f.Usual, f.Copied = stats.Median(r.usual), stats.Median(r.copied)
	f.OtherUsual, f.OtherBare, f.OtherDuring, f.OtherRatio = stats.Median(r.otherUsual), stats.Median(r.otherBare), stats.Median(r.otherDuring), stats.Median(r.otherRatio)
	return f, nil
}

// rounds is the state of one part. Each round is a load of its own: while nothing moves, during a bare copy, and during a move.
type rounds struct {
	*cluster
	cfg    Config
	part   moving
	figure *Figure

	usual, copied                                  []float64
	otherUsual, otherBare, otherDuring, otherRatio []float64
}

func (r *rounds) round(ctx context.Context) error {
	m, home, other, err := r.home(ctx)
	if err != nil {
		return err
	}
	if err := r.checkpoint(ctx, m); err != nil {
		return err
	}
	l, err := r.load(r.cfg.Callers)
	if err != nil {
		return err
	}
	err = r.underLoad(ctx, l, m, home, other)
	l.end()
	if err != nil {
		return err
	}
	return r.check(ctx, l)
}

func (r *rounds) underLoad(ctx context.Context, l *load, m *shards.Map, home, other shards.Host) error {
	f := r.figure
	if err := settle(ctx, slices.Concat(l.shard, l.others)); err != nil {
		return err
	}
	_, _ = longest(l.shard), p999(l.others) // of their first calls, which open connections
	if err := sleep(ctx, r.cfg.Turn); err != nil {
		return err
	}
	usual := p999(l.others)
	r.usual, r.otherUsual = append(r.usual, longest(l.shard)), append(r.otherUsual, usual)
	bare, err := r.bare(ctx, home, other)
	if err != nil {
		return fmt.Errorf("the bare copy: %w", err)
	}
	_ = longest(l.shard)
	r.otherBare = append(r.otherBare, p999(l.others))

	ended := func() error { return nil }
	if r.part.lock {
		if ended, err = r.hold(ctx, home); err != nil {
			return err
		}
	}
	var rate int64
	if r.part.rate {
		rate = r.cfg.Rate
	}
	began := time.Now()
	var locked time.Time
	_, err = move.Run(ctx, move.RunConfig{To: other.Name, Config: move.Config{
		Map: m, Store: r.store, Shards: shards.SetOf(moves), LoginWithPassword: true, By: "bench", Rate: rate,
		Events: func(e progress.Event) {
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
		},
	}})
	took := time.Since(began)
	if err := ended(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	if err := settle(ctx, slices.Concat(l.shard, l.others)); err != nil {
		return err
	}
	during := p999(l.others)
	f.Stalls = append(f.Stalls, longest(l.shard))
	f.Seconds, f.Bare = append(f.Seconds, took.Seconds()), append(f.Bare, bare.Seconds())
	f.Ratios = append(f.Ratios, took.Seconds()/bare.Seconds())
	r.otherDuring, r.otherRatio = append(r.otherDuring, during), append(r.otherRatio, during/usual)
	return nil
}

// hold locks a row that no caller writes, for a time. The returned function waits until it is released.
func (r *rounds) hold(ctx context.Context, home shards.Host) (func() error, error) {
	conn, err := r.connect(ctx, home)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, `BEGIN; SELECT FROM `+schema+`.`+table(0)+` WHERE id = 1 FOR UPDATE`); err != nil {
		return nil, err
	}
	var held sync.WaitGroup
	held.Go(func() {
		_ = sleep(ctx, r.cfg.Hold) // cut short if ctx ends
		_ = conn.Close(context.WithoutCancel(ctx))
	})
	return func() error { held.Wait(); return ctx.Err() }, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
