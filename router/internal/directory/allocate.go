package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// Allocate returns the shard of a key, and chooses one if the key has no entry. Package router documents it as ForNew. Once
// started, an allocation continues after ctx ends.
func (d *Directory) Allocate(ctx context.Context, key shards.Key) (shards.Number, error) {
	text, err := textOf(key)
	if err != nil {
		return 0, err
	}
	if e, ok := d.known(text); ok {
		return e.shard, nil
	}
	a := d.allocator()
	e, err := d.changes.share(ctx, text, func(ctx context.Context) (entry, error) {
		n, err := d.allocate(ctx, a, text)
		return entry{n, err == nil}, err
	})
	return e.shard, err
}

// Place returns a shard for a key without an entry, such as an ID that the shard will make, and counts the key there. If ctx
// ends during the call, or an answer is lost, the shard may count one key more than it has.
func (d *Directory) Place(ctx context.Context) (shards.Number, error) {
	a := d.allocator()
	if err := d.recountIf(ctx, a, func() bool { return a.stale(d.maxAge) }); err != nil {
		return 0, err
	}
	return d.takePlace(ctx, a)
}

// allocator returns the allocator for the current map.
func (d *Directory) allocator() *allocator {
	m := d.store.Map()
	for {
		a := d.allocating.Load()
		if a != nil && a.shards == m {
			return a
		}
		next := newAllocator(m)
		if d.allocating.CompareAndSwap(a, next) {
			return next
		}
		m = d.store.Map()
	}
}

// allocate returns the shard in the entry of a key, and creates the entry if there is none.
func (d *Directory) allocate(ctx context.Context, a *allocator, key string) (shards.Number, error) {
	if e, err := d.read(ctx, key); err != nil || e.found {
		return e.shard, err
	}
	if err := d.recountIf(ctx, a, func() bool { return a.stale(d.maxAge) }); err != nil {
		return 0, err
	}
	n, err := d.takePlace(ctx, a)
	if err != nil {
		return 0, err
	}
	written, err := d.insert(ctx, key, n)
	if err == nil && written {
		d.remember(key, n)
		return n, nil
	}
	if err != nil && !failure.MayHaveRun(err) {
		d.counts.release(ctx, n)
		return 0, err
	}
	// Another caller inserted first, or the outcome of this insert is unknown.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	winner, errRead := d.read(ctx, key)
	switch {
	case errRead != nil:
		return 0, errors.Join(err, errRead)
	case !winner.found && err != nil:
		return 0, err // the insert may still happen, so the key stays counted
	case !winner.found:
		d.counts.release(ctx, n)
		return 0, fmt.Errorf("the entry of key %s was deleted right after it was created", key)
	case winner.shard != n || err == nil:
		d.counts.release(ctx, n)
	}
	return winner.shard, nil
}

// takePlace counts one more key in a shard that has room.
func (d *Directory) takePlace(ctx context.Context, a *allocator) (shards.Number, error) {
	for recounted := false; ; {
		n, ok := a.next()
		if !ok && recounted {
			return 0, ErrFull
		}
		if !ok { // the counts may be stale: some shard may have room again
			recounted = true
			if err := d.recountIf(ctx, a, func() bool { return true }); err != nil {
				return 0, err
			}
			continue
		}
		keys, taken, err := d.counts.take(ctx, n)
		var unreachable *shards.HostError
		switch {
		case err == nil && taken:
			a.added(n, keys)
			return n, nil
		case err == nil:
			a.refused(n)
		default:
			down := errors.As(err, &unreachable)
			a.failed(n, down)
			if !down || ctx.Err() != nil {
				return 0, err
			}
		}
	}
}

// recountIf counts the keys of all shards if wanted returns true and the allocation depends on counts. Concurrent callers
// share one count.
func (d *Directory) recountIf(ctx context.Context, a *allocator, wanted func() bool) error {
	if !wanted() {
		return nil
	}
	_, err := d.recount.share(ctx, "", func(ctx context.Context) (entry, error) {
		if !wanted() { // another call did it
			return entry{}, nil
		}
		start := time.Now()
		var keys []int64
		if a.counts {
			var err error
			if keys, err = d.counts.count(ctx, a.shards); err != nil {
				return entry{}, err
			}
		}
		a.learn(keys, start)
		return entry{}, nil
	})
	return err
}
