package move

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/promote"
	"github.com/kiloshard/kiloshard/shards/move/internal/rooms"
	"github.com/kiloshard/kiloshard/shards/move/internal/schedule"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

// Report is the result of some moves.
type Report struct {
	Done      shards.Set // on the target, or where they were after Abort
	Unmoved   shards.Set // that were on the target already
	Resumable shards.Set // whose move is still under way: the ledger has it
}

// Run moves shards to a host, some at a time, while services write. A shard that is on the host already is left alone.
//
// When ctx ends, no other move is begun, and those under way stop where they are, except that a shard that is fenced is
// brought to its new host first. The error is a [shards.PartialError] if not all shards were moved. Each that was begun is
// in the ledger: [Resume] continues it, [Abort] takes it back; until then [Run] refuses it with [ErrUnderWay].
func Run(ctx context.Context, cfg RunConfig) (Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	var todo []ledger.Move
	var unmoved []shards.Number
	for n := range cfg.Shards.All() {
		m := cfg.newMove(n)
		if m.Source == m.Target {
			unmoved = append(unmoved, n)
			continue
		}
		if _, err := hosts.Host(cfg.Map, m.Target); err != nil {
			return Report{}, err
		}
		todo = append(todo, m)
	}
	report, err := each(ctx, cfg.Config, todo, admitted(func(ctx context.Context, j *job) error {
		change := j.change()
		now, err := change.Newest(ctx)
		if err != nil {
			return err
		}
		if err := change.OnSource(now); err != nil {
			return err
		}
		_, notes, err := j.check(ctx, shards.Set{})
		if err != nil {
			return err
		}
		if err := claim.EnterAll(ctx, j.from, j.Move); err != nil {
			return err
		}
		j.entered = true
		for _, note := range notes {
			j.note("%s", note)
		}
		j.event(progress.Begun)
		return j.advance(ctx)
	}))
	report.Unmoved = shards.SetOf(unmoved...)
	return report, err
}

// Resume continues the moves of some shards that are under way, of all if cfg.Shards is empty.
func Resume(ctx context.Context, cfg Config) (Report, error) {
	return onMoves(ctx, cfg, asked{of: []ledger.Outcome{ledger.UnderWay}, end: ledger.Moved}, admitted(func(ctx context.Context, j *job) error { return j.resume(ctx) }),
		(*promote.Promotion).Resume)
}

// admitted returns do with a wait before it, until the hosts have room for one more move.
func admitted(do func(context.Context, *job) error) func(context.Context, *job) error {
	var all rooms.Rooms
	return func(ctx context.Context, j *job) error {
		leave, err := all.Admit(ctx, j.from, j.to, j.Move, j.waits)
		defer leave()
		if err != nil {
			return err
		}
		return do(ctx, j)
	}
}

// Abort takes back the moves of some shards that are under way, of all if cfg.Shards is empty. The shards stay where they
// are. A move whose target serves already cannot be taken back.
func Abort(ctx context.Context, cfg Config) (Report, error) {
	return onMoves(ctx, cfg, asked{of: []ledger.Outcome{ledger.UnderWay}, end: ledger.Aborted}, func(ctx context.Context, j *job) error { return j.noted(ctx, j.abort(ctx)) },
		(*promote.Promotion).Abort)
}

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
			answers[m.Target] = hosts.Gone(ctx, cfg.Map, m.Target)
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

// asked selects the moves that a command works on: those with one of some outcomes. A move that another mover has ended as end is done.
type asked struct {
	of  []ledger.Outcome
	end ledger.Outcome
}

// endedAs returns an error unless another mover has ended the move with the outcome that the command wants.
func (a asked) endedAs(outcome ledger.Outcome) error {
	if outcome == a.end {
		return nil
	}
	return fmt.Errorf("another command has ended the move meanwhile: it is %s", outcome)
}

// together joins the reports of different shards.
func together(a, b Report) Report {
	return Report{Done: a.Done.Union(b.Done), Unmoved: a.Unmoved.Union(b.Unmoved), Resumable: a.Resumable.Union(b.Resumable)}
}

// onMoves calls do for moves, and split for promotions under way. All shards of a promotion go together, also if the config names only some of them.
func onMoves(ctx context.Context, cfg Config, ask asked, do func(context.Context, *job) error, split func(*promote.Promotion, context.Context) error) (Report, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Report{}, err
	}
	all, err := Status(ctx, cfg.Map)
	if err != nil {
		return Report{}, err
	}
	wanted := func(m ledger.Move) bool {
		return slices.Contains(ask.of, m.Outcome) && (cfg.Shards.Len() == 0 || cfg.Shards.Has(m.Shard))
	}
	splits := promotionsUnderWay(all, wanted)
	all = slices.DeleteFunc(all, func(m ledger.Move) bool { return !wanted(m) || m.Split != "" && m.Outcome == ledger.UnderWay })
	report, err := each(ctx, cfg, all, func(ctx context.Context, j *job) error {
		switch wanted, err := j.takeOver(ctx, ask.of...); {
		case err != nil:
			return err
		case !wanted:
			return ask.endedAs(j.Outcome)
		}
		return do(ctx, j)
	})
	for _, moves := range splits {
		next, failed := takeUp(ctx, cfg, moves, ask, split)
		report, err = together(report, next), schedule.Join(err, failed)
	}
	return report, err
}

// each makes a job of each move and calls do for it, as many at a time as their hosts may have.
func each(ctx context.Context, cfg Config, all []ledger.Move, do func(context.Context, *job) error) (Report, error) {
	var mu sync.Mutex // guards the caller's Events
	if report := cfg.Events; report != nil {
		cfg.Events = func(e progress.Event) { mu.Lock(); defer mu.Unlock(); report(e) }
	}
	done, resumable, err := schedule.Each(ctx, cfg.PerHost, all, func(ctx context.Context, m ledger.Move) (underWay bool, err error) {
		j, err := begin(ctx, cfg, m)
		defer j.close(ctx)
		if err == nil {
			err = do(ctx, j)
		}
		return j.entered && j.Outcome == ledger.UnderWay, err
	})
	return Report{Done: done, Resumable: resumable}, err
}
