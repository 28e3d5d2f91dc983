package move

import (
	"context"
	"errors"

	"github.com/kiloshard/kiloshard/shards"
)

// Planned is what [Run] would do with a shard.
type Planned struct {
	Shard    shards.Number `json:"shard"`
	Source   string        `json:"source"`
	Target   string        `json:"target"`
	Bytes    int64         `json:"bytes"`    // of its tables
	Space    int64         `json:"space"`    // bytes that it takes, with indexes
	Problems []string      `json:"problems"` // why it cannot be moved; empty if nothing is known against it
	Notes    []string      `json:"notes"`    // what an operator should know, such as tables without a primary key
}

// Plan makes all checks that [Run] makes, the target's login on the source included. If they find nothing, it also makes each shard on its
// target, without rows, and rolls that back. It changes nothing but the ledgers of moves, which it makes where they are missing. A shard that is on the host already is left out.
func Plan(ctx context.Context, cfg RunConfig) ([]Planned, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	lost, err := CloseLost(ctx, KeepConfig{Map: cfg.Map, Events: cfg.Events, Logger: cfg.Logger}, true)
	if err != nil {
		cfg.Logger.Warn("ways back", "err", err)
	}
	var all []Planned
	for n := range cfg.Shards.All() {
		m := cfg.newMove(n)
		if m.Source == m.Target {
			continue
		}
		p := Planned{Shard: n, Source: m.Source, Target: m.Target}
		j, err := begin(ctx, cfg.Config, m)
		if err == nil {
			err = j.plan(ctx, &p, lost)
		}
		j.close(ctx)
		var problems *CheckError
		switch {
		case errors.As(err, &problems):
			p.Problems = problems.Problems
		case err != nil && ctx.Err() != nil:
			return all, err
		case err != nil:
			p.Problems = []string{err.Error()}
		}
		all = append(all, p)
	}
	return all, nil
}

func (j *job) plan(ctx context.Context, p *Planned, lost shards.Set) error {
	err := j.measure(ctx)
	if err != nil {
		return err
	}
	p.Bytes = j.bytes
	if p.Space, p.Notes, err = j.check(ctx, lost); err != nil {
		return err
	}
	return j.trySchema(ctx)
}
