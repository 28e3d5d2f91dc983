package routes

import (
	"context"
	"time"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
)

// farDelay is the delay of a network, each way, in the part delay.
const farDelay = time.Millisecond

// parts is the table of all parts.
func parts() []harness.Part[*stage] {
	usual := []string{perSecond, p50, p99, p999}
	return []harness.Part[*stage]{
		{Name: "lone", Run: lone},
		{Name: partMany, Run: few{what: "select", statement: selects, pools: []int{4, 8, connsPerHost}, metrics: usual}.run},
		{Name: "delay", Run: few{what: "select", statement: selects, delay: farDelay, goroutines: []int{256}, metrics: usual}.run},
		{Name: "slow", Run: few{
			what: "select beside slow calls", statement: mixed, goroutines: []int{64}, metrics: []string{p50, p99, p999, perSecond},
		}.run},
		{Name: "beside", Run: beside},
		{Name: "inserts", Run: few{what: "insert", statement: inserts, goroutines: []int{64}, metrics: []string{perSecond, p50, p99}}.run},
		{Name: "observed", Run: observed},
		{Name: "schemas", Run: schemas},
		{Name: "starvation", Run: starvation},
		{Name: "swaps", Run: swaps},
	}
}

// Parts returns the names of the parts of [Run], in the order in which they run.
func Parts() []string { return harness.Names(parts()) }

// Run compares package router with pgxpool, by the same statements on the same tables, with the same number of
// connections. All sides take a turn in every round, and each round begins with another side. Before the first round each
// side has a turn that does not count, which opens connections and prepares statements. Every row that is read is checked.
//
// The statements of pgxpool name the schema, so that it prepares them in its default mode, as it would without shards.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	report := &Report{Rounds: cfg.Rounds, Turn: cfg.Turn.Seconds(), Conns: connsPerHost}
	err := harness.Run(parts(), cfg.Only, func(p harness.Part[*stage]) error {
		s := &stage{cfg: cfg, report: report, part: p.Name}
		defer s.close()
		cfg.Progress(p.Name)
		return p.Run(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}
