package many

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kiloshard/kiloshard/router"
	"github.com/kiloshard/kiloshard/shards"
)

const (
	eachPerHost   = 4
	streamPerHost = 2
)

// Options configure work over many shards.
type Options struct {
	// PerHost is how many shards of a host are worked on at a time. Defaults to 4 for [Each], [EachKey] and [EachID],
	// to 2 for [Stream], and to all for [Collect], [CollectByShard], [Merge] and [GetMany].
	PerHost int

	// Timeout is the time limit for one shard, including the wait for a connection. Defaults to none.
	Timeout time.Duration

	// FirstError stops the work at the first shard that fails: no more shards start, and the contexts of those that
	// run are canceled. By default the others continue.
	FirstError bool
}

func (o Options) orPerHost(n int) Options {
	if o.PerHost <= 0 {
		o.PerHost = n
	}
	return o
}

// Each calls fn once for every shard of a set: on all hosts at the same time, on each host for up to opts.PerHost
// shards at a time, started in rising order. fn runs in several goroutines. Its context ends with ctx, at
// opts.Timeout, and when the work stops early. Each returns when no fn is running.
//
// The error is [shards.ErrNoShard] if the map does not have a shard of the set; fn is not called then. Otherwise it
// is a [shards.PartialError], unless fn returned nil for every shard. Done are the shards for which fn returned nil,
// Failed those for which it returned an error, and NotAttempted those for which it was not called. Causes say why
// shards were not attempted: ctx ended; a shard failed, with opts.FirstError; or fn returned the [shards.HostError]
// of a host that cannot be connected to, and the other shards of that host were skipped.
func Each(ctx context.Context, r *router.Router, set shards.Set, opts Options, fn func(context.Context, router.Shard) error) error {
	all, err := handles(r, set)
	if err != nil {
		return err
	}
	return each(ctx, r, KindEach, all, opts, func(ctx context.Context, i int) error { return fn(ctx, all[i]) })
}

// each calls fn with the index of every shard.
func each(ctx context.Context, r *router.Router, kind Kind, all []router.Shard, opts Options, fn func(ctx context.Context, i int) error) error {
	j := newJob(ctx, r, kind, opts.orPerHost(eachPerHost))
	defer j.stop()
	j.onHosts(all, func(l *hostJob, on []int) {
		var started atomic.Int64
		var workers sync.WaitGroup
		for range min(l.opts.PerHost, len(on)) {
			workers.Go(func() {
				for l.ctx.Err() == nil {
					turn := int(started.Add(1)) - 1
					if turn >= len(on) {
						return
					}
					l.do(all[on[turn]], func(ctx context.Context) error { return fn(ctx, on[turn]) })
				}
			})
		}
		workers.Wait()
	})
	return j.result(all)
}

// do runs fn for one shard and records its result.
func (l *hostJob) do(s router.Shard, fn func(context.Context) error) {
	ctx, cancel := l.limit()
	defer cancel()
	l.ended(ctx, s, l.call(func() error { return fn(ctx) }))
}
