package many

import (
	"context"
	"time"
)

// Kind is the kind of a [Work].
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
	Shards       int           // number of shards it covered
	Failed       int           // how many of them failed
	NotAttempted int           // how many of them were not attempted
	Took         time.Duration // from the start of the first shard to the end of the last
}

// Tracer is a tracer of [router.Config] that also traces work over many shards. TraceMany is called once all of them
// have answered or were skipped. ctx is the caller's.
type Tracer interface {
	TraceMany(ctx context.Context, w Work)
}

// trace reports the work to the tracers after it has ended.
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
