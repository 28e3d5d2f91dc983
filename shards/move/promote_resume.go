package move

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
)

// promotionsUnderWay returns the moves of each promotion under way of which one is wanted.
func promotionsUnderWay(all []Move, wanted func(Move) bool) (splits [][]Move) {
	by := map[string][]Move{}
	for _, m := range all {
		if m.Split != "" && m.Outcome == UnderWay {
			by[m.Split] = append(by[m.Split], m)
		}
	}
	for _, moves := range by {
		if slices.ContainsFunc(moves, wanted) {
			splits = append(splits, moves)
		}
	}
	return splits
}

// together joins what has become of different shards.
func together(a, b Report) Report {
	return Report{Done: a.Done.Union(b.Done), Unmoved: a.Unmoved.Union(b.Unmoved), Resumable: a.Resumable.Union(b.Resumable)}
}

// partly joins their errors, each a [shards.PartialError] or nil.
func partly(errs ...error) error {
	all := &shards.PartialError{}
	for _, err := range errs {
		var partial *shards.PartialError
		if errors.As(err, &partial) {
			all.Done = all.Done.Union(partial.Done)
			all.Failed, all.Causes = append(all.Failed, partial.Failed...), append(all.Causes, partial.Causes...)
			all.NotAttempted, all.Interrupted = all.NotAttempted.Union(partial.NotAttempted), all.Interrupted.Union(partial.Interrupted)
		}
	}
	if len(all.Failed)+all.NotAttempted.Len() == 0 {
		return nil
	}
	return all
}

// takeUp goes on with a promotion that is in the ledger.
func takeUp(ctx context.Context, cfg Config, moves []Move, ask asked, do func(context.Context, *promotion) error) (Report, error) {
	p, err := promotionOf(cfg, moves)
	defer func() { p.close(ctx) }()
	p.entered = true
	if err == nil {
		err = p.connectSource(ctx)
	}
	if err == nil {
		err = p.read(ctx)
	}
	switch {
	case err != nil:
	case p.Outcome == UnderWay:
		err = do(ctx, p)
	default:
		err = ask.endedAs(p.Outcome)
	}
	return p.report(err)
}

// resume continues a promotion, unless the map has the shards on the target and the source does not know that: it has lost their fences in a
// failover of its own, and takes writes that nobody will see.
func (p *promotion) resume(ctx context.Context) error {
	now, err := p.newest(ctx)
	if err != nil {
		return err
	}
	if home := p.home(now); home != p.Source && !slices.Contains([]Step{Promoting, Switched}, p.Step) {
		return p.noted(ctx, fmt.Errorf("version %d of the map puts %s on %s, and the ledger of %s has them at step %s: %[4]s may have lost their fences; "+
			"expected it to serve none of them", now.Version(), p.moving(), home, p.Source, p.Step))
	}
	return p.advance(ctx)
}

// read reads the ledger of the source: it may have gone on, or ended, since it was read.
func (p *promotion) read(ctx context.Context) error {
	rows, err := p.from.Query(ctx, `SELECT `+moveColumns+` FROM kiloshard.moves m WHERE split = $1 AND side = 'source' ORDER BY shard`, p.Split)
	if err != nil {
		return err
	}
	p.moves, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m Move, err error) {
		if err := row.Scan(m.fields()...); err != nil {
			return m, err
		}
		if m.Source != p.Source || m.Target != p.Target {
			return m, fmt.Errorf("the ledger of %s has shard %d leave %q for %q in promotion %s: expected %[1]s and %[6]s as for the others", p.Source, m.Shard, m.Source, m.Target, p.Split, p.Target)
		}
		return m, m.wellFormed(p.cfg.Map)
	})
	if err != nil {
		return err
	}
	p.Move = p.moves[0]
	for _, m := range p.moves {
		if m.Step == Aborting || m.Step == Cutover && p.Step == Fenced {
			p.Step = m.Step
		}
	}
	if p.Step == Fenced { // the last of the fences was the last thing that was done
		p.Step = Cutover
	}
	return nil
}
