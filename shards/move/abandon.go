package move

import (
	"context"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
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
	var todo []ledger.Move
	for _, m := range all {
		named := cfg.Shards.Has(m.Shard)
		if m.Outcome != ledger.UnderWay || cfg.Shards.Len() > 0 && !named {
			continue
		}
		if _, probed := answers[m.Target]; !probed {
			answers[m.Target] = isGone(ctx, cfg.Map, m.Target)
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
		if underWay, err := j.takeOver(ctx, ledger.UnderWay); err != nil || !underWay {
			return err
		}
		return j.noted(ctx, j.abort(ctx))
	})
}

// isGone returns an error if a host answers, or is about to.
func isGone(ctx context.Context, m *shards.Map, name string) error {
	host, err := hosts.Host(m, name)
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
