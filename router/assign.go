package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/kiloshard/kiloshard/shards"
)

// Nowhere is where a key is that belongs to no shard, for [Router.Assign].
const Nowhere shards.Number = -1

// ErrElsewhere says that a key is not where [Router.Assign] was told, so that nothing was changed.
var ErrElsewhere = errors.New("the key is in another shard")

// Assign moves a key by hand, whose rows its caller has moved: the directory says shard to afterwards. It does so only if
// the key is in shard from now, by its entry, or without one by the other strategy; [Nowhere] for a key without either.
// From and to may be the same, which writes down where the other strategy has put the key.
//
// It returns [ErrElsewhere] when the key is in another shard than from, [ErrFull] when the capacity of shard to is
// reached, [ErrNoDirectory] when the strategy is arithmetic, and [shards.ErrNoShard] for numbers that the map does not
// have. Nothing has changed then. After any other error the change may have been made. Once it has begun, the end of ctx
// does not stop it.
//
// This router goes by the new entry at once, others within their [Config.DirectoryMaxAge]. To move the rows of a key
// that is in use: stop its writers, copy its rows, Assign, wait for that time, let writers go on, delete the old rows.
func (r *Router) Assign(ctx context.Context, key shards.Key, from, to shards.Number) error {
	now := r.now.Load()
	if now.choice == nil {
		return fmt.Errorf("strategy %s: %w", now.shards.Strategy().By, ErrNoDirectory)
	}
	d := r.directory
	for _, n := range []shards.Number{from, to} {
		if !now.shards.Has(n) && (n == to || n != Nowhere) {
			return noShard(n, now.shards)
		}
	}
	text, err := keyText(key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.news.whole(ctx, func(ctx context.Context) error { return d.assign(ctx, key, text, from, to) })
}

func (d *directory) assign(ctx context.Context, key shards.Key, text string, from, to shards.Number) error {
	entry, err := d.read(ctx, text)
	if err != nil {
		return err
	}
	at := entry.shard
	if !entry.found {
		if at, err = d.router.Map().Otherwise(key); err != nil {
			at = Nowhere
		}
	}
	switch {
	case at != from && at == Nowhere:
		return fmt.Errorf("key %s is in no shard, expected %d: %w", key, from, ErrElsewhere)
	case at != from:
		return fmt.Errorf("key %s is in shard %d, expected %d: %w", key, at, from, ErrElsewhere)
	case entry.found && at == to:
		return nil
	}
	if _, taken, err := d.places.take(ctx, to); err != nil {
		return err
	} else if !taken {
		return fmt.Errorf("shard %d has %d keys: %w", to, d.router.Map().Capacity(to), ErrFull)
	}
	var written bool
	if entry.found {
		written, err = d.replace(ctx, text, from, to)
	} else {
		written, err = d.insert(ctx, text, to)
	}
	if err != nil || !written {
		d.forget(text) // it may be another now
	}
	switch {
	case err != nil && uncertain(err):
		return err // the place stays taken: rather one too many than one too few
	case err != nil:
		d.places.giveBack(ctx, to)
		return err
	case !written:
		d.places.giveBack(ctx, to)
		return fmt.Errorf("key %s was moved meanwhile: %w", key, ErrElsewhere)
	}
	d.remember(text, to)
	if entry.found {
		d.places.giveBack(ctx, from)
	}
	return nil
}

// uncertain tells whether a statement that failed may have been done all the same: when the server did not say.
func uncertain(err error) bool {
	var noHost *shards.HostError
	var said *pgconn.PgError
	switch {
	case errors.Is(err, ErrLost):
		return true
	case errors.As(err, &noHost), errors.As(err, new(unsentError)):
		return false // it was never sent, whatever the server said
	case errors.As(err, &said):
		return said.Code[:2] == "57" || said.Code[:2] == "08" // it was going down, or the connection was
	}
	return true
}
