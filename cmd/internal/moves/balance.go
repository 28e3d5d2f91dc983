package moves

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kiloshard/kiloshard/cmd/internal/cli"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move"
	"github.com/kiloshard/kiloshard/shards/move/balance"
)

// weighed is in the help of the commands that plan moves.
const weighed = `The load of a shard is half its part of all bytes and half its part of all rows written. Bytes are the size of its tables
on disk, with indexes and TOAST. Written rows are the inserts, updates and deletes during --writes-over, 10 s by default.
With 0, or if nothing is written, only bytes count.`

func (f *moveFlags) addWritesOver(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.writesOver, "writes-over", 10*time.Second, "how long to count the rows that are written to each shard; 0 for sizes alone")
}

// usage is what the shards of a map take.
type usage struct {
	bytes  map[shards.Number]int64
	writes map[shards.Number]float64 // rows a second; nil if not measured
}

// measure returns what the shards take. It counts writes for as long as it is told.
func measure(ctx context.Context, a *cli.App, m *shards.Map, writesOver time.Duration) (u usage, err error) {
	if u.bytes, err = move.Sizes(ctx, m); err != nil || writesOver == 0 {
		return u, err
	}
	a.Warn("counting the rows that are written, for %s", writesOver)
	u.writes, err = move.Writes(ctx, m, writesOver)
	return u, err
}

// perSecond returns a rate as JSON has it: null if it was not measured.
func (u usage) perSecond(rate float64) *float64 {
	if u.writes == nil {
		return nil
	}
	return &rate
}

// balancePlan is the JSON of the commands that move shards to several hosts.
type balancePlan struct {
	Bytes  int64         `json:"bytes"`
	Writes *float64      `json:"writes_per_second"` // rows written to the shards that move; null if not measured
	Moves  []balanceMove `json:"moves"`
	Hosts  []balanceHost `json:"hosts"`
}

type balanceMove struct {
	Shard  shards.Number `json:"shard"`
	Source string        `json:"source"`
	Target string        `json:"target"`
	Bytes  int64         `json:"bytes"`
	Writes *float64      `json:"writes_per_second"`
}

type balanceHost struct {
	Host   string   `json:"host"`
	Weight int      `json:"weight"`
	Before hostLoad `json:"before"`
	After  hostLoad `json:"after"`
}

// hostLoad is what a host carries.
type hostLoad struct {
	Shards int      `json:"shard_count"`
	Bytes  int64    `json:"bytes"`
	Writes *float64 `json:"writes_per_second"`
	Load   float64  `json:"load"` // for its weight; 1 if all hosts are even
}

func (u usage) loadOf(l balance.Load) hostLoad {
	return hostLoad{l.Shards, l.Bytes, u.perSecond(l.Writes), l.Load}
}

// newBalancePlan returns what is printed of a plan.
func newBalancePlan(m *shards.Map, u usage, targets map[shards.Number]string) balancePlan {
	p := balancePlan{Moves: []balanceMove{}, Writes: u.perSecond(0)}
	for _, n := range slices.Sorted(maps.Keys(targets)) {
		p.Moves = append(p.Moves, balanceMove{n, m.Host(n).Name, targets[n], u.bytes[n], u.perSecond(u.writes[n])})
		p.Bytes += u.bytes[n]
		if p.Writes != nil {
			*p.Writes += u.writes[n]
		}
	}
	after := balance.Loads(m, u.bytes, u.writes, targets)
	for i, before := range balance.Loads(m, u.bytes, u.writes, nil) {
		p.Hosts = append(p.Hosts, balanceHost{before.Host, before.Weight, u.loadOf(before), u.loadOf(after[i])})
	}
	return p
}

// moveTo moves shards to the hosts of a plan, or prints it.
func moveTo(ctx context.Context, a *cli.App, cfg move.RunConfig, dryRun bool, writesOver time.Duration, plan func(usage) map[shards.Number]string) error {
	if dryRun { // else runMoves does
		closeLost(ctx, a, cfg, dryRun)
	}
	use, err := measure(ctx, a, cfg.Map, writesOver)
	if err != nil {
		return err
	}
	cfg.Targets = plan(use)
	cfg.Shards = shards.SetOf(slices.Collect(maps.Keys(cfg.Targets))...)
	if !dryRun && len(cfg.Targets) > 0 {
		return moveAndKeep(ctx, a, cfg, "moved")
	}
	result := newBalancePlan(cfg.Map, use, cfg.Targets)
	return a.Print(result, func() {
		if a.Output == cli.Table { // for a script the moves alone
			a.Table(result.hostRows())
		}
		if len(result.Moves) == 0 {
			a.Say("nothing to move")
			return
		}
		a.Say("")
		a.Table(result.rows(a))
		a.Say("%s to be moved, %s; nothing is changed", cli.Count(len(result.Moves), "shard"), cli.Megabytes(result.Bytes))
	})
}

// rows are the moves of a plan, those between the same hosts in one row.
func (p balancePlan) rows(a *cli.App) [][]string {
	by := map[[2]string][]balanceMove{}
	for _, m := range p.Moves {
		by[[2]string{m.Source, m.Target}] = append(by[[2]string{m.Source, m.Target}], m)
	}
	rows := [][]string{{"FROM", "TO", ">SHARDS", ">SIZE", ">WRITES/S", "WHICH"}}
	for _, hosts := range slices.SortedFunc(maps.Keys(by), func(x, y [2]string) int { return slices.Compare(x[:], y[:]) }) {
		var bytes int64
		var writes float64
		var numbers []shards.Number
		for _, m := range by[hosts] {
			bytes, numbers = bytes+m.Bytes, append(numbers, m.Shard)
			if m.Writes != nil {
				writes += *m.Writes
			}
		}
		perSecond := rate(&writes)
		if p.Writes == nil {
			perSecond = rate(nil)
		}
		rows = append(rows, []string{hosts[0], hosts[1], cli.Thousands(len(numbers)), cli.Megabytes(bytes), perSecond, a.ShortSet(shards.SetOf(numbers...))})
	}
	return rows
}

// hostRows are the hosts of a plan, each figure before the moves and after them.
func (p balancePlan) hostRows() [][]string {
	rows := [][]string{{"HOST", ">WEIGHT", ">SHARDS", ">AFTER", ">SIZE", ">AFTER", ">WRITES/S", ">AFTER", ">LOAD", ">AFTER"}}
	for _, h := range p.Hosts {
		row := []string{h.Host, cli.Thousands(h.Weight)}
		for _, figure := range []func(hostLoad) string{
			func(l hostLoad) string { return cli.Thousands(l.Shards) },
			func(l hostLoad) string { return cli.Megabytes(l.Bytes) },
			func(l hostLoad) string { return rate(l.Writes) },
			func(l hostLoad) string { return fmt.Sprintf("%.0f%%", 100*l.Load) },
		} {
			row = append(row, figure(h.Before), figure(h.After))
		}
		rows = append(rows, row)
	}
	return rows
}

// rate writes rows a second.
func rate(perSecond *float64) string {
	switch {
	case perSecond == nil:
		return "-"
	case *perSecond < 10:
		return fmt.Sprintf("%.1f", *perSecond)
	}
	return cli.Thousands(int(math.Round(*perSecond)))
}
