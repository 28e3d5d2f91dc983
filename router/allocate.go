package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kiloshard/kiloshard/shards"
)

// ErrFull says that no open shard has room for another key.
var ErrFull = errors.New("no room for another key")

// ForNew returns the shard of a new key, such as a user who signs up. With a directory, a key without an entry is given a shard by the
// map's allocation, on a host that is not closed, and the directory remembers it: whoever asks for the key from then on,
// in this process or another, gets that shard. However many ask at the same time, one shard is chosen. A key that has an
// entry keeps it. With the other strategies it is what [Router.ForKey] returns.
//
// Where the map says that keys without an entry are by another strategy, nothing tells an old key of that kind from a new
// one: ForNew is for keys that have no rows yet.
//
// No shard and no host gets more keys than its capacity. It returns [ErrFull] when no open shard has room, and otherwise
// the errors of [Router.ForKey]. When ctx ends, what has begun goes on: ask again to hear which shard it is.
//
// A new key costs three statements: its entry is looked up, it is counted in its shard, its entry is written. A process
// that dies between the last two leaves a shard counted one key too high, never too low.
func (r *Router) ForNew(ctx context.Context, key shards.Key) (Shard, error) {
	now := r.now.Load()
	if now.choice == nil {
		n, err := now.shards.For(key)
		if err != nil {
			return Shard{}, err
		}
		return now.on(n), nil
	}
	d := r.directory
	text, err := keyText(key)
	if err != nil {
		return Shard{}, err
	}
	if a, ok := d.known(text); ok {
		return d.on(a.shard)
	}
	a, err := d.news.share(ctx, text, func(ctx context.Context) (spot, error) {
		n, err := d.allocate(ctx, now.choice, text)
		return spot{n, err == nil}, err
	})
	if err != nil {
		return Shard{}, err
	}
	return d.on(a.shard)
}

// allocate returns the entry of a key, which it makes if there is none.
func (d *directory) allocate(ctx context.Context, choice *choice, key string) (shards.Number, error) {
	if a, err := d.read(ctx, key); err != nil || a.found {
		return a.shard, err
	}
	if err := d.recount(ctx, choice, func() bool { return choice.stale(d.maxAge) }); err != nil {
		return 0, err
	}
	n, err := d.place(ctx, choice)
	if err != nil {
		return 0, err
	}
	written, err := d.insert(ctx, key, n)
	if err == nil && written {
		d.remember(key, n)
		return n, nil
	}
	if err != nil && !uncertain(err) {
		d.places.giveBack(ctx, n)
		return 0, err
	}
	// Somebody else was first, or nobody knows whether this insert was done.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
	defer cancel()
	winner, errRead := d.read(ctx, key)
	switch {
	case errRead != nil:
		return 0, errors.Join(err, errRead)
	case !winner.found && err != nil:
		return 0, err // the insert may still come: its place stays taken
	case !winner.found:
		d.places.giveBack(ctx, n)
		return 0, fmt.Errorf("the entry of key %s was removed as soon as it was made", key)
	case winner.shard != n || err == nil:
		d.places.giveBack(ctx, n)
	}
	return winner.shard, nil
}

// place counts one more key in a shard that has room.
func (d *directory) place(ctx context.Context, choice *choice) (shards.Number, error) {
	for recounted := false; ; {
		n, ok := choice.next()
		if !ok && recounted {
			return 0, ErrFull
		}
		if !ok { // what was heard may be old: keys may have left
			recounted = true
			if err := d.recount(ctx, choice, func() bool { return true }); err != nil {
				return 0, err
			}
			continue
		}
		keys, taken, err := d.places.take(ctx, n)
		var unreachable *shards.HostError
		switch {
		case err == nil && taken:
			choice.added(n, keys)
			return n, nil
		case err == nil:
			choice.refused(n)
		default:
			down := errors.As(err, &unreachable)
			choice.failed(n, down)
			if !down || ctx.Err() != nil {
				return 0, err
			}
		}
	}
}

// recount hears how many keys the shards have, if the allocation goes by that, once for all who want to know.
func (d *directory) recount(ctx context.Context, choice *choice, wanted func() bool) error {
	if !wanted() {
		return nil
	}
	_, err := d.counts.share(ctx, "", func(ctx context.Context) (spot, error) {
		if !wanted() { // it was done since
			return spot{}, nil
		}
		start := time.Now()
		var keys []int64
		if choice.counts {
			var err error
			if keys, err = d.places.count(ctx, choice.shards); err != nil {
				return spot{}, err
			}
		}
		choice.learn(keys, start)
		return spot{}, nil
	})
	return err
}
