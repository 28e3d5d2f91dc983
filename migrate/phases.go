package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kiloshard/kiloshard/migrate/internal/session"
	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/fanout"
)

var (
	// ErrTooManyFailures is among the causes when more shards failed than Config.MaxFailures allows.
	ErrTooManyFailures = errors.New("too many shards failed")

	// ErrCanary is among the causes if the run ended after its canary: a shard of it failed, or Config.Check returned an error.
	ErrCanary = errors.New("the canary did not pass")
)

// phase is a part of a run. It ends before the next one begins.
type phase struct {
	name string
	work []fanout.Work
}

// phases divides the work: the canary first, if any; then the first of the fresh shards, if the canary has too few of them for the others to
// be copied from; then the hosts in waves.
func (r *run) phases(work []fanout.Work, fresh shards.Set) []phase {
	var phases []phase
	rest := work
	if r.cfg.Canary > 0 {
		var canary []fanout.Work
		canary, rest = some(work, r.cfg.Canary, fanout.Plan(r.cfg.Map, r.canaryBefore))
		phases = append(phases, phase{"canary", canary})
	}
	left := without(fresh, without(fresh, shardsOf(rest))) // not in the canary
	if more := firstShards - (fresh.Len() - left.Len()); left.Len() > 0 && more > 0 {
		begin, _ := some(fanout.Plan(r.cfg.Map, left), more, nil)
		phases = append(phases, phase{"first shards", begin})
		taken := shardsOf(begin)
		var after []fanout.Work
		for _, w := range rest {
			if w.Shards = slices.DeleteFunc(slices.Clone(w.Shards), taken.Has); len(w.Shards) > 0 {
				after = append(after, w)
			}
		}
		rest = after
	}
	wave := r.cfg.Wave
	if wave <= 0 {
		wave = max(1, len(rest))
	}
	for hosts := range slices.Chunk(rest, wave) {
		name := "all hosts"
		if len(rest) > wave {
			name = "hosts"
			for _, w := range hosts {
				name += " " + w.Host.Name
			}
		}
		phases = append(phases, phase{name, hosts})
	}
	return phases
}

// some takes shards out of the work, from all hosts in turn: count of them together with those that were taken before.
func some(work []fanout.Work, count int, before []fanout.Work) (taken, rest []fanout.Work) {
	each, on := make([]int, len(work)), map[string]int{}
	for _, w := range before {
		on[w.Host.Name] = len(w.Shards)
		count -= len(w.Shards)
	}
	for range count {
		least := -1
		for i, w := range work {
			if each[i] < len(w.Shards) && (least < 0 || on[w.Host.Name] < on[work[least].Host.Name]) {
				least = i
			}
		}
		if least < 0 {
			break // no shard is left
		}
		each[least]++
		on[work[least].Host.Name]++
	}
	for i, w := range work {
		if each[i] > 0 {
			taken = append(taken, fanout.Work{Host: w.Host, Shards: w.Shards[:each[i]]})
		}
		if each[i] < len(w.Shards) {
			rest = append(rest, fanout.Work{Host: w.Host, Shards: w.Shards[each[i]:]})
		}
	}
	return taken, rest
}

// inPhases runs all files in all shards of the work, phase by phase. Its error is one [shards.PartialError] for all
// phases.
func (r *run) inPhases(ctx context.Context, work []fanout.Work, all shards.Set) (shards.Set, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := &watch{progress: r.cfg.Progress, limit: r.cfg.MaxFailures, stop: cancel}
	watch.begin(work)
	defer watch.end()

	var done []shards.Range
	together := &shards.PartialError{}
	settled, _ := some(fanout.Plan(r.cfg.Map, without(r.cfg.Shards, all)), r.cfg.Canary, nil)
	r.canaryBefore = shardsOf(settled)
	fresh := r.fromSnapshot(work)
	for _, p := range r.phases(work, fresh) {
		if fresh.Len() > 0 && p.name != "first shards" && p.name != "canary" {
			r.takeSnapshot(ctx, fresh, shards.SetOfRanges(done...))
			fresh = shards.Set{}
		}
		r.events.send(Event{Kind: PhaseBegan, Phase: p.name})
		finished, err := fanout.Run(ctx, fanout.Config[*session.Session]{
			Map: r.cfg.Map, Open: r.open, Close: r.close, Alive: (*session.Session).Alive, Do: r.do,
			PerHost: r.cfg.PerHost, Grace: r.cfg.Grace, Progress: watch,
		}, p.work)
		done = append(done, finished.Ranges()...)
		var partial *shards.PartialError
		if errors.As(err, &partial) {
			together.Failed = append(together.Failed, partial.Failed...)
			for _, cause := range partial.Causes {
				if stop := context.Cause(ctx); errors.Is(cause, stop) && (errors.Is(stop, ErrLeftShard) || errors.Is(stop, ErrTooManyFailures)) {
					cause = stop // without the end of the context
				}
				together.Causes = append(together.Causes, cause)
			}
			together.Interrupted = together.Interrupted.Union(partial.Interrupted)
		}
		if p.name == "canary" {
			if err := r.passed(ctx, finished.Union(r.canaryBefore), err); err != nil {
				together.Causes = append(together.Causes, err)
				break
			}
		}
		if len(together.Causes) > 0 {
			break
		}
	}
	together.Done = shards.SetOfRanges(done...)
	together.Failed = sortShards(together.Failed)
	together.NotAttempted = without(without(all, together.Done), numbersOf(together.Failed))
	if len(together.Failed) == 0 && together.NotAttempted.Len() == 0 {
		return together.Done, nil
	}
	return together.Done, together
}

// shardsOf returns the shards of all hosts of the work.
func shardsOf(work []fanout.Work) shards.Set {
	var all []shards.Number
	for _, w := range work {
		all = append(all, w.Shards...)
	}
	return shards.SetOf(all...)
}

// passed returns why the run must not go on after its canary, or nil.
func (r *run) passed(ctx context.Context, canary shards.Set, err error) error {
	if err != nil {
		return fmt.Errorf("%w: not all of its shards are done", ErrCanary)
	}
	if r.cfg.Check == nil {
		return nil
	}
	if err := r.cfg.Check(ctx, canary); err != nil {
		return fmt.Errorf("%w: %w", ErrCanary, err)
	}
	return nil
}

// watch forwards the progress of all phases as that of one run, and stops the run if too many shards fail, or if
// one fails as all others would. fanout calls it
// from one goroutine at a time.
type watch struct {
	progress fanout.Progress // nil for none
	limit    int             // of failed shards; 0 for none
	stop     context.CancelCauseFunc
	failed   int
}

func (w *watch) begin(work []fanout.Work) {
	if w.progress == nil {
		return
	}
	for _, host := range work {
		w.progress.Begin(host.Host.Name, len(host.Shards))
	}
}

func (w *watch) end() {
	if w.progress != nil {
		w.progress.End()
	}
}

// Begin and End do nothing, since they are called for each phase.
func (w *watch) Begin(string, int) {}

func (w *watch) End() {}

func (w *watch) Finished(host string, n shards.Number, err error, d time.Duration) {
	if w.progress != nil {
		w.progress.Finished(host, n, err, d)
	}
	if err == nil {
		return
	}
	if errors.Is(err, ErrLeftShard) {
		w.stop(ErrLeftShard)
	}
	if w.failed++; w.limit > 0 && w.failed > w.limit {
		w.stop(fmt.Errorf("%w: %d, the limit is %d", ErrTooManyFailures, w.failed, w.limit))
	}
}
