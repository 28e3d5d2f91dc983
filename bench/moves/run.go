package moves

import (
	"context"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
)

// bench is the state of a part.
type bench struct {
	cfg    Config
	part   string
	report *Report
}

// parts is the table of all parts.
func parts() []harness.Part[*bench] {
	return []harness.Part[*bench]{
		{Name: "table", Run: moving{tables: 1}.run},
		{Name: "tables", Run: moving{tables: 10}.run},
		{Name: "rate", Run: moving{tables: 1, limited: true}.run},
		{Name: "lock", Run: moving{tables: 1, locked: true}.run},
		{Name: "drain", Run: drain},
	}
}

// Parts returns the names of the parts of [Run], in the order in which they run.
func Parts() []string { return harness.Names(parts()) }

// Run moves shards while callers write to them and read from them as fast as they can. It counts failed calls and does not
// retry them.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	report := &Report{Rows: cfg.Rows, Callers: cfg.Callers, Hold: cfg.Hold.Seconds(), Rate: cfg.Rate}
	err := harness.Run(parts(), cfg.Only, func(p harness.Part[*bench]) error {
		cfg.Progress(p.Name)
		return p.Run(ctx, &bench{cfg: cfg, part: p.Name, report: report})
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}
