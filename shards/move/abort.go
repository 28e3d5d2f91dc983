package move

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/cleanup"
	"github.com/kiloshard/kiloshard/shards/move/internal/fence"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/replicate"
	"github.com/kiloshard/kiloshard/shards/move/internal/session"
	"github.com/kiloshard/kiloshard/shards/move/internal/wayback"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// abortLimit is how long an abort of a shard that no host serves may take after ctx has ended.
const abortLimit = 2 * time.Minute

// cleanUp removes what the move made beside the shard itself: the subscription, the slot, the publication, the markers.
func (j *job) cleanUp(ctx context.Context) error {
	s := j.stream()
	if j.to != nil {
		if err := s.Unsubscribe(ctx); err != nil {
			return err
		}
		j.event(progress.Unsubscribed)
	}
	if err := s.Unpublish(ctx); err != nil {
		return err
	}
	j.event(progress.Unpublished)
	if err := s.RestoreIdentities(ctx); err != nil {
		return err
	}
	if j.back != nil && j.Step == ledger.Switched {
		if err := wayback.Remove(ctx, j.from, *j.back); err != nil {
			return err
		}
	}
	for _, conn := range []*pgx.Conn{j.from, j.to} {
		if conn == nil {
			continue
		}
		if err := replicate.DropMarkers(ctx, conn, j.ID); err != nil {
			return err
		}
	}
	return nil
}

// abort takes a move back that has not switched the map. The map decides, and not the ledger. The step is changed before the map, so that
// this mover's claim is sure to be the last one, and the map before anything is taken back.
func (j *job) abort(ctx context.Context) error {
	if err := j.mayAbort(ctx); err != nil {
		return err
	}
	working := ctx
	if j.Step == ledger.Fenced { // no host serves the shard, so an interrupt has to wait
		j.hold.Take()
		var cancel context.CancelFunc
		working, cancel = context.WithTimeout(context.WithoutCancel(ctx), abortLimit)
		defer cancel()
		if err := j.keepClosed(working); err != nil {
			return err
		}
	} else if err := j.setStep(ctx, ledger.Aborting); err != nil {
		return err
	}
	if err := j.change().Stay(working, "is aborted"); err != nil {
		return err
	}
	if j.Step == ledger.Fenced {
		if err := j.unfence(working, ledger.Aborting); err != nil {
			return err
		}
		j.hold.Release()
	}
	if err := j.cleanUp(ctx); err != nil {
		return err
	}
	if j.Back != nil && j.to != nil {
		if err := wayback.Remove(ctx, j.to, j.Move); err != nil {
			return err
		}
	}
	if err := session.Run(ctx, j.from, fence.Drop(j.FenceSchema())); err != nil {
		return err
	}
	if err := j.takeBack(ctx); err != nil {
		return err
	}
	if err := claim.SetOutcome(ctx, j.from, j.Move, ledger.Aborted); err != nil {
		return err
	}
	j.Outcome = ledger.Aborted
	j.event(progress.Aborted)
	return nil
}

// mayAbort returns an error if the target serves the shard, or is about to.
func (j *job) mayAbort(ctx context.Context) error {
	change := j.change()
	now, err := change.Newest(ctx)
	if err != nil {
		return err
	}
	if err := change.NotOnTarget(now); err != nil {
		return err
	}
	if j.Step == ledger.Switched || j.Step == ledger.Finished {
		return fmt.Errorf("%s serves the shard already: expected move resume, and then a move back to %s", j.Target, j.Source)
	}
	return nil
}

// takeBack drops what the move has made of the shard on the target, and ends it there; a target that is gone keeps it.
func (j *job) takeBack(ctx context.Context) error {
	if j.to == nil {
		j.note("subscription %s and schema %s may be left on %s: move clean drops them if that comes back", j.Slot(), j.Schema, j.Target)
		return nil
	}
	if j.Returns == "" {
		if err := j.mayAbort(ctx); err != nil {
			return err
		}
		if err := cleanup.DropAborted(ctx, j.to, j.Move); err != nil {
			return err
		}
	}
	return claim.SetOutcome(ctx, j.to, j.Move, ledger.Aborted)
}

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
