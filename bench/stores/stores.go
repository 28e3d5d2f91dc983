package stores

import (
	"context"

	"github.com/kiloshard/kiloshard/bench/internal/harness"
)

// parts is the table of all parts.
func parts() []harness.Part[*bench] {
	return []harness.Part[*bench]{
		{Name: "objects", Run: measureObjects},
		{Name: "entities", Run: measureEntities},
		{Name: "getmany", Run: measureGetMany},
		{Name: "fill", Run: measureFill},
	}
}

// Parts returns the names of the parts of [Run], in the order in which they run.
func Parts() []string { return harness.Names(parts()) }

// Run measures on new shards. The error is that of the first call that fails.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg = cfg.withDefaults()
	b := &bench{cfg: cfg, report: Report{Shards: cfg.Shards, Rounds: cfg.Rounds, Callers: cfg.Callers}}
	defer b.close()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	if err := harness.Run(parts(), cfg.Only, func(p harness.Part[*bench]) error { return p.Run(ctx, b) }); err != nil {
		return nil, err
	}
	return &b.report, nil
}
