package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
)

// answerLimit is how long a host that is said to be gone may take to answer.
const answerLimit = 10 * time.Second

// AbortWithoutTarget takes back the moves of some shards, of all if cfg.Shards is empty, whose target does not answer and will not come back.
// Everything on the source is as after [Abort]; the target is left alone: should it come back, [Clean] drops what the moves have
// made there. It refuses a shard that the map has on the target, and a target that answers.
func AbortWithoutTarget(ctx context.Context, cfg Config) (Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	cfg.withoutTarget = true
	all, silent := Status(ctx, cfg.Map) // at least one host is
	answers := map[string]error{}
	var todo []Move
	for _, m := range all {
		named := cfg.Shards.Has(m.Shard)
		if m.Outcome != UnderWay || cfg.Shards.Len() > 0 && !named {
			continue
		}
		if _, probed := answers[m.Target]; !probed {
			answers[m.Target] = cfg.isGone(ctx, m.Target)
		}
		err := answers[m.Target]
		if err == nil && m.Split != "" {
			err = fmt.Errorf("shard %d is part of a promotion: expected move abort, which does without its target", m.Shard)
		}
		switch {
		case err == nil:
			todo = append(todo, m)
		case named || ctx.Err() != nil:
			return Report{}, err
		}
	}
	if len(todo) == 0 {
		return Report{}, silent
	}
	return each(ctx, cfg, todo, func(ctx context.Context, j *job) error {
		if underWay, err := j.takeOver(ctx, UnderWay); err != nil || !underWay {
			return err
		}
		return j.noted(ctx, j.abort(ctx))
	})
}

// isGone returns an error if a host answers, or is about to.
func (c Config) isGone(ctx context.Context, name string) error {
	host, err := c.host(name)
	if err != nil {
		return err
	}
	probing, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := session.Open(probing, host)
	session.Close(ctx, conn)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return fmt.Errorf("%s answers: expected move abort", name)
	case session.Code(err) == "57P03": // it is starting
		return fmt.Errorf("%w: expected a host that is gone, or move abort", err)
	}
	return nil
}

// takeOver claims a move that is in the ledger, reads it, and reports whether it has one of some outcomes: it may have gone on, or ended,
// since it was read before.
func (j *job) takeOver(ctx context.Context, outcomes ...Outcome) (bool, error) {
	if err := claim(ctx, j.from, j.ID); err != nil {
		return false, err
	}
	if err := j.reread(ctx, j.from); err != nil {
		return false, err
	}
	j.entered = j.Outcome == UnderWay
	return slices.Contains(outcomes, j.Outcome), nil
}

// abandoned returns the moves to a host that were aborted without it.
func abandoned(onTarget []Move, truth map[ledgerKey]Move) (left []Move) {
	for _, m := range onTarget {
		if m.Outcome == UnderWay && truth[ledgerKey{m.Source, m.ID}].Outcome == Aborted {
			left = append(left, m)
		}
	}
	return left
}

// dropAbandoned drops what such a move has made of its shard on the target, which is back, unless the map has it there.
func (c *CleanReport) dropAbandoned(ctx context.Context, m *shards.Map, conns *hostConns, left Move) error {
	conn, err := conns.withLedger(ctx, left.Target)
	if err != nil {
		return err
	}
	if err := lockShard(ctx, conn, left.turn()); err != nil {
		return err
	}
	if err := dropMarkers(ctx, conn, left.ID); err != nil {
		return err
	}
	if left.Returns == "" && !(m.Has(left.Shard) && m.Host(left.Shard).Name == left.Target) {
		if err := left.dropAborted(ctx, conn); err != nil {
			return err
		}
		c.Removed = append(c.Removed, left.Target+": unfinished schema "+left.Schema)
	}
	return left.setOutcome(ctx, conn, Aborted)
}
