package move

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// Planned is what [Run] would do with a shard.
type Planned struct {
	Shard    shards.Number
	Source   string
	Target   string
	Bytes    int64    // of its tables
	Problems []string // why it cannot be moved; empty if nothing is known against it
}

// Plan makes all checks that [Run] makes, the target's login on the source included, and changes nothing but the ledgers of
// moves, which it makes where they are missing. A shard that is on the host already is left out.
func Plan(ctx context.Context, cfg Config) ([]Planned, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	var all []Planned
	for n := range cfg.Shards.All() {
		m := cfg.newMove(n)
		if m.Source == m.Target {
			continue
		}
		p := Planned{Shard: n, Source: m.Source, Target: m.Target}
		j, err := begin(ctx, cfg, m)
		if err == nil {
			err = j.plan(ctx, &p)
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

func (j *job) plan(ctx context.Context, p *Planned) error {
	if err := j.check(ctx); err != nil {
		return err
	}
	err := j.measure(ctx)
	p.Bytes = j.bytes
	return err
}

// newMove returns a move that is about to begin.
func (c Config) newMove(n shards.Number) Move {
	return Move{ID: newID(), Shard: n, Schema: c.Map.Schema(n), Source: c.Map.Host(n).Name, Target: cmp.Or(c.Targets[n], c.To), Step: Prepare, Who: c.By}
}

// Verify compares all rows of moves that have come to the cutover, as of one moment, for which writers wait. It is for a move
// whose mover has ended. The error wraps a [RowsError] or a [StructureError] for each shard that differs.
func Verify(ctx context.Context, cfg Config) (Report, error) {
	return underWay(ctx, cfg, func(ctx context.Context, j *job) error {
		if !slices.Contains([]Step{Copy, Cutover}, j.Step) {
			return errors.New("nothing to compare: the move is at step " + string(j.Step))
		}
		return j.compareAsOfOneMoment(ctx)
	})
}

// compareAsOfOneMoment compares structures and rows. Writers are held up until the target has all that they have done,
// snapshots are taken on both sides, and writers go on while these are compared.
func (j *job) compareAsOfOneMoment(ctx context.Context) error {
	if err := j.verifyStructure(ctx); err != nil {
		return err
	}
	source, target, err := j.snapshots(ctx)
	defer func() { closeAll(ctx, source, target) }()
	if err != nil {
		return err
	}
	j.event("comparing")
	if err := j.compare(ctx, source, j.Schema, target); err != nil {
		return err
	}
	j.event("compared")
	return nil
}

func closeAll(ctx context.Context, conns ...*pgx.Conn) {
	for _, conn := range conns {
		closeConn(ctx, conn)
	}
}
