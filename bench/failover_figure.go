package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kiloshard/kiloshard/internal/localpg"
	"github.com/kiloshard/kiloshard/shards"
)

// failoverStory holds the times of the events.
type failoverStory struct {
	began time.Time // the load
	fault time.Time
	found time.Time // the router found the host down
	able  time.Time // the new primary accepted writes, or the network worked again
	back  time.Time // the first write after that was acknowledged
}

// figure returns the result of a fault, without what audit and stray add.
func (b *failoverBench) figure(load *failoverLoad, at failoverStory) *FailoverFigure {
	f := &FailoverFigure{Part: b.part, Errors: map[string]int{}, Resume: milliseconds(at.back.Sub(at.able))}
	warm := at.began.Add(b.cfg.Turn / 4) // until then connections are opened and statements prepared
	before := load.callsOf(1, func(_ *failoverCaller, call failoverCall) bool {
		return call.began.After(warm) && call.ended.Before(at.fault)
	})
	during := load.callsOf(1, func(_ *failoverCaller, call failoverCall) bool {
		return call.ended.After(at.fault) && call.began.Before(at.back)
	})
	f.OtherBeforeP99, f.OtherDuringP99 = p99Of(before), p99Of(during)
	if f.OtherBeforeP99 > 0 {
		f.OtherRatio = f.OtherDuringP99 / f.OtherBeforeP99
	}
	for _, call := range load.callsOf(1, func(*failoverCaller, failoverCall) bool { return true }) {
		f.OtherCalls++
		if call.err != nil {
			f.OtherErrors++
		}
	}
	var fast []failoverCall
	for _, call := range load.callsOf(0, func(*failoverCaller, failoverCall) bool { return true }) {
		since := milliseconds(call.ended.Sub(at.fault))
		if call.began.Before(at.fault) {
			f.LastStuck = max(f.LastStuck, since)
		}
		if call.err == nil {
			continue
		}
		f.Errors[kindOf(call.err)]++
		if f.FirstError == nil || since < *f.FirstError {
			f.FirstError = &since
		}
		if call.began.After(at.found) && call.ended.Before(at.able) {
			fast = append(fast, call)
		}
	}
	if len(fast) > 0 {
		p99 := p99Of(fast)
		f.FailFast = &p99
	}
	return f
}

// audit counts which writes to a host's shards exist on a server.
func (f *FailoverFigure) audit(ctx context.Context, load *failoverLoad, host int, server *localpg.Server) error {
	conn, err := pgx.Connect(ctx, server.DSN(failoverDatabase))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	there := map[shards.Number]map[int64]int{}
	for n := host * failoverShards; n < (host+1)*failoverShards; n++ {
		rows, err := conn.Query(ctx, fmt.Sprintf(`SELECT id, count(*) FROM shard_%05d.ledger GROUP BY id`, n))
		if err != nil {
			return err
		}
		there[shards.Number(n)] = map[int64]int{}
		var id int64
		var count int
		if _, err := pgx.ForEachRow(rows, []any{&id, &count}, func() error {
			there[shards.Number(n)][id] = count
			if count > 1 {
				f.Doubled++
			}
			return nil
		}); err != nil {
			return err
		}
	}
	for _, c := range load.callers[host] {
		for _, entry := range c.ids {
			found := there[entry.shard][entry.id] > 0
			switch {
			case entry.acked && !found:
				f.Acked++
				f.Lost++
			case entry.acked:
				f.Acked++
			case found:
				f.Unknown++
				f.UnknownRan++
			default:
				f.Unknown++
			}
		}
	}
	return nil
}

// stray counts the rows of an old primary that the new one does not have. The old primary has lost its standby, so commits
// in progress when it was frozen are there, but were never acknowledged.
func (f *FailoverFigure) stray(ctx context.Context, old, now *localpg.Server) error {
	for n := range failoverShards {
		query := fmt.Sprintf(`SELECT coalesce(array_agg(id), '{}') FROM shard_%05d.ledger`, n)
		its, err := askServer[[]int64](ctx, old, query)
		if err != nil {
			return err
		}
		ours, err := askServer[[]int64](ctx, now, query)
		if err != nil {
			return err
		}
		known := map[int64]bool{}
		for _, id := range ours {
			known[id] = true
		}
		for _, id := range its {
			if !known[id] {
				f.Astray++
			}
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
