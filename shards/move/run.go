package move

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/internal/claim"
	"github.com/kiloshard/kiloshard/shards/move/internal/hosts"
	"github.com/kiloshard/kiloshard/shards/move/internal/promote"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
	"github.com/kiloshard/kiloshard/shards/move/progress"
)

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
	var all rooms
	report, err := each(ctx, cfg.Config, todo, func(ctx context.Context, j *job) error {
		leave, err := all.admit(ctx, j)
		defer leave()
		if err != nil {
			return err
		}
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
	})
	report.Unmoved = shards.SetOf(unmoved...)
	return report, err
}

// Resume continues the moves of some shards that are under way, of all if cfg.Shards is empty.
func Resume(ctx context.Context, cfg Config) (Report, error) {
	var all rooms
	resume := func(ctx context.Context, j *job) error {
		leave, err := all.admit(ctx, j)
		defer leave()
		if err != nil {
			return err
		}
		return j.resume(ctx)
	}
	return onMoves(ctx, cfg, asked{of: []ledger.Outcome{ledger.UnderWay}, end: ledger.Moved}, resume,
		(*promote.Promotion).Resume)
}

// Abort takes back the moves of some shards that are under way, of all if cfg.Shards is empty. The shards stay where they
// are. A move whose target serves already cannot be taken back.
func Abort(ctx context.Context, cfg Config) (Report, error) {
	return onMoves(ctx, cfg, asked{of: []ledger.Outcome{ledger.UnderWay}, end: ledger.Aborted}, func(ctx context.Context, j *job) error { return j.noted(ctx, j.abort(ctx)) },
		(*promote.Promotion).Abort)
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
		report, err = together(report, next), partly(err, failed)
	}
	return report, err
}

// each calls do for moves, as many at a time as their hosts may have, and one at a time for a shard: two would wait for each other's locks.
func each(ctx context.Context, cfg Config, all []ledger.Move, do func(context.Context, *job) error) (Report, error) {
	var mu sync.Mutex // guards the caller's Events
	if report := cfg.Events; report != nil {
		cfg.Events = func(e progress.Event) { mu.Lock(); defer mu.Unlock(); report(e) }
	}
	ends := make(chan ended)
	busy, shard := map[string]int{}, map[shards.Number]bool{}
	partial := &shards.PartialError{}
	var done, resumable, left, interrupted []shards.Number
	for running := 0; len(all) > 0 || running > 0; {
		next := slices.IndexFunc(all, func(m ledger.Move) bool {
			return !shard[m.Shard] && busy[m.Source] < cfg.PerHost && busy[m.Target] < cfg.PerHost
		})
		if next >= 0 && ctx.Err() == nil {
			m := all[next]
			all = slices.Delete(all, next, next+1)
			busy[m.Source]++
			busy[m.Target]++
			shard[m.Shard] = true
			running++
			go func() { ends <- one(ctx, cfg, m, do) }()
			continue
		}
		if running == 0 { // ctx has ended
			for _, m := range all {
				left = append(left, m.Shard)
			}
			break
		}
		e := <-ends
		running--
		busy[e.move.Source]--
		busy[e.move.Target]--
		shard[e.move.Shard] = false
		if e.err == nil {
			done = append(done, e.move.Shard)
			continue
		}
		if e.resumable {
			resumable = append(resumable, e.move.Shard)
		}
		if byInterrupt(ctx, e.err) {
			left = append(left, e.move.Shard)
			interrupted = append(interrupted, e.move.Shard)
			continue
		}
		partial.Failed = append(partial.Failed, &shards.ShardError{Shard: e.move.Shard, Schema: e.move.Schema, Host: e.move.Source, Err: e.err})
	}
	report := Report{Done: shards.SetOf(done...), Resumable: shards.SetOf(resumable...)}
	if len(partial.Failed)+len(left) == 0 {
		return report, nil
	}
	if len(left) > 0 {
		partial.Causes = append(partial.Causes, context.Cause(ctx))
	}
	slices.SortFunc(partial.Failed, func(a, b *shards.ShardError) int { return int(a.Shard - b.Shard) })
	partial.Done, partial.NotAttempted, partial.Interrupted = report.Done, shards.SetOf(left...), shards.SetOf(interrupted...)
	return report, partial
}

// byInterrupt reports whether a move ended because ctx did, and not by an error of its own.
func byInterrupt(ctx context.Context, err error) bool {
	var pg *pgconn.PgError
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.As(err, &pg) && pg.Code == "57014")
}

// ended is the result of a move.
type ended struct {
	move      ledger.Move
	resumable bool // the ledger has it, and it has not ended
	err       error
}

func one(ctx context.Context, cfg Config, m ledger.Move, do func(context.Context, *job) error) ended {
	j, err := begin(ctx, cfg, m)
	defer j.close(ctx)
	if err == nil {
		err = do(ctx, j)
	}
	return ended{move: m, resumable: j.entered && j.Outcome == ledger.UnderWay, err: err}
}
