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

// Options say how work over many shards goes about it.
type Options struct {
	// PerHost is how many shards of a host are worked on at a time. Defaults to 4 for [Each], [EachKey] and [EachID],
	// and to 2 for [Stream], whose shards hold a connection each; for [Collect], [CollectByShard],
	// [Merge] and [GetMany] to all of them.
	PerHost int

	// Timeout is the time for one shard, waiting for a connection included. Defaults to none.
	Timeout time.Duration

	// FirstError ends the work with the first shard that fails: no more shards are begun, and the contexts of those
	// under way are cancelled. Defaults to going on with the others.
	FirstError bool
}

func (o Options) orPerHost(n int) Options {
	if o.PerHost <= 0 {
		o.PerHost = n
	}
	return o
}

// Each calls fn once for every shard of a set: on all hosts at the same time, on each host for up to opts.PerHost shards
// at a time, begun in rising order. fn is called from several goroutines. Its context ends with ctx, at opts.Timeout,
// and when the rest is left alone. Each returns when no fn is running any more.
//
// The error is [shards.ErrNoShard] for a set that names a shard which the map does not have; fn is not called then. Else
// it is a [shards.PartialError], unless fn has returned nil for every shard. Done are the shards for which it has, Failed
// those for which it has returned an error, and NotAttempted those for which it was not called. Shards are left alone, as
// Causes tell, when ctx has ended; after a failure, with opts.FirstError; and when fn has returned the
// [shards.HostError] of a host to which no connection can be made: then the others of that host.
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
	j.onHosts(all, func(l *lane, on []int) {
		var begun atomic.Int64
		var workers sync.WaitGroup
		for range min(l.opts.PerHost, len(on)) {
			workers.Go(func() {
				for l.ctx.Err() == nil {
					turn := int(begun.Add(1)) - 1
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

// do does the work of one shard.
func (l *lane) do(s router.Shard, fn func(context.Context) error) {
	ctx, cancel := l.limit()
	defer cancel()
	l.ended(ctx, s, fn(ctx))
}
