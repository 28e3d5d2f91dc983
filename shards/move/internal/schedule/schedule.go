// Package schedule runs moves, as many at a time as their hosts may have.
package schedule

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
	"github.com/kiloshard/kiloshard/shards/move/ledger"
)

// Each calls do for moves, at most perHost at a time for each of their hosts, and one at a time for a shard: two would wait for each other's locks. Once ctx has
// ended, it begins no other one. do reports whether the move is in the ledger and has not ended. The error is a [shards.PartialError].
func Each(ctx context.Context, perHost int, all []ledger.Move, do func(context.Context, ledger.Move) (underWay bool, err error)) (done, underWay shards.Set, err error) {
	type ended struct {
		move     ledger.Move
		underWay bool
		err      error
	}
	ends := make(chan ended)
	busy, shard := map[string]int{}, map[shards.Number]bool{}
	partial := &shards.PartialError{}
	var finished, resumable, left, interrupted []shards.Number
	for running := 0; len(all) > 0 || running > 0; {
		next := slices.IndexFunc(all, func(m ledger.Move) bool {
			return !shard[m.Shard] && busy[m.Source] < perHost && busy[m.Target] < perHost
		})
		if next >= 0 && ctx.Err() == nil {
			m := all[next]
			all = slices.Delete(all, next, next+1)
			busy[m.Source]++
			busy[m.Target]++
			shard[m.Shard] = true
			running++
			go func() {
				underWay, err := do(ctx, m)
				ends <- ended{m, underWay, err}
			}()
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
			finished = append(finished, e.move.Shard)
			continue
		}
		if e.underWay {
			resumable = append(resumable, e.move.Shard)
		}
		if byInterrupt(ctx, e.err) {
			left = append(left, e.move.Shard)
			interrupted = append(interrupted, e.move.Shard)
			continue
		}
		partial.Failed = append(partial.Failed, &shards.ShardError{Shard: e.move.Shard, Schema: e.move.Schema, Host: e.move.Source, Err: e.err})
	}
	done, underWay = shards.SetOf(finished...), shards.SetOf(resumable...)
	if len(partial.Failed)+len(left) == 0 {
		return done, underWay, nil
	}
	if len(left) > 0 {
		partial.Causes = append(partial.Causes, context.Cause(ctx))
	}
	slices.SortFunc(partial.Failed, func(a, b *shards.ShardError) int { return int(a.Shard - b.Shard) })
	partial.Done, partial.NotAttempted, partial.Interrupted = done, shards.SetOf(left...), shards.SetOf(interrupted...)
	return done, underWay, partial
}

// byInterrupt reports whether a move ended because ctx did, and not by an error of its own.
func byInterrupt(ctx context.Context, err error) bool {
	var pg *pgconn.PgError
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.As(err, &pg) && pg.Code == "57014")
}

// Join joins the errors of different shards, each a [shards.PartialError] or nil.
func Join(errs ...error) error {
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
