package router

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// FanoutKind says what a [Fanout] is.
type FanoutKind int

// The kinds of work over many shards.
const (
	FanoutEach    FanoutKind = iota // of [Router.Each], [Router.EachKey] and [Router.EachID]
	FanoutCollect                   // of [Collect] and [CollectByShard]
	FanoutMerge                     // of [Merge], until all shards have answered
	FanoutGetMany                   // of [GetMany]
	FanoutStream                    // of [Stream], until all rows were taken
)

var fanoutNames = [...]string{"each", "collect", "merge", "getmany", "stream"}

// String returns each, collect, merge, getmany or stream.
func (k FanoutKind) String() string { return fanoutNames[k] }

// FanoutKinds returns all kinds.
func FanoutKinds() []FanoutKind {
	return []FanoutKind{FanoutEach, FanoutCollect, FanoutMerge, FanoutGetMany, FanoutStream}
}

// Fanout is what has come of work over many shards.
type Fanout struct {
	Kind         FanoutKind
	Shards       int           // that it was for
	Failed       int           // of them
	NotAttempted int           // of them
	Took         time.Duration // from the first shard to the last
}

// FanoutTracer is a tracer that is also told of work over many shards, once all of them have answered or were left alone.
// ctx is that of who asked for it. Of one that is in the config of a pool alone nothing is told here.
type FanoutTracer interface {
	TraceFanout(ctx context.Context, f Fanout)
}

func fanoutTracers(all []pgx.QueryTracer) (told []FanoutTracer) {
	for _, tracer := range all {
		if t, ok := tracer.(FanoutTracer); ok {
			told = append(told, t)
		}
	}
	return told
}

// tell tells tracers what has come of the work, which has ended.
func (j *job) tell(all []Shard, began time.Time) {
	if len(all) == 0 {
		return
	}
	tracers := all[0].home.host.trace.fanout // of all hosts the same
	if len(tracers) == 0 {
		return
	}
	j.mu.Lock()
	f := Fanout{Kind: j.kind, Shards: len(all), Failed: len(j.failed), Took: time.Since(began)}
	f.NotAttempted = len(all) - len(j.done) - len(j.failed)
	j.mu.Unlock()
	for _, t := range tracers {
		t.TraceFanout(j.caller, f)
	}
}
