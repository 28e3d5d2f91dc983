package many

import (
	"context"
	"time"
)

// Kind says what a [Work] is.
type Kind int

// The kinds of work over many shards.
const (
	KindEach    Kind = iota // of [Each], [EachKey] and [EachID]
	KindCollect             // of [Collect] and [CollectByShard]
	KindMerge               // of [Merge], until all shards have answered
	KindGetMany             // of [GetMany]
	KindStream              // of [Stream], until all rows were taken
)

var kindNames = [...]string{"each", "collect", "merge", "getmany", "stream"}

// String returns each, collect, merge, getmany or stream.
func (k Kind) String() string { return kindNames[k] }

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{KindEach, KindCollect, KindMerge, KindGetMany, KindStream} }

// Work is the result of work over many shards.
type Work struct {
	Kind         Kind
	Shards       int           // that it was for
	Failed       int           // of them
	NotAttempted int           // of them
	Took         time.Duration // from the first shard to the last
}

// Tracer is one of [router.Config].Tracers that also wants to hear of work over many shards, once all of them have
// answered or were left alone. ctx is the caller's.
type Tracer interface {
	TraceMany(ctx context.Context, w Work)
}

// trace tells the tracers of the work, which has ended.
func (j *job) trace(shards int, began time.Time) {
	if shards == 0 {
		return
	}
	j.mu.Lock()
	w := Work{Kind: j.kind, Shards: shards, Failed: len(j.failed), Took: time.Since(began)}
	w.NotAttempted = shards - len(j.done) - len(j.failed)
	j.mu.Unlock()
	for _, tracer := range j.router.Tracers() {
		if t, ok := tracer.(Tracer); ok {
			t.TraceMany(j.caller, w)
		}
	}
}
