package directory

import (
	"context"
	"fmt"

	"github.com/kiloshard/kiloshard/router/internal/failure"
	"github.com/kiloshard/kiloshard/shards"
)

// Assign changes the entry of a key from one shard to another, or creates one. Package router documents it. The map must
// have both shards, unless from is [Nowhere]. Once started, an assignment continues after ctx ends.
func (d *Directory) Assign(ctx context.Context, key shards.Key, from, to shards.Number) error {
	text, err := textOf(key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.changes.run(ctx, func(ctx context.Context) error { return d.assign(ctx, key, text, from, to) })
}

func (d *Directory) assign(ctx context.Context, key shards.Key, text string, from, to shards.Number) error {
	entry, err := d.read(ctx, text)
	if err != nil {
		return err
	}
	at := entry.shard
	if !entry.found {
		if at, err = d.store.Map().Otherwise(key); err != nil {
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
	if _, taken, err := d.counts.take(ctx, to); err != nil {
		return err
	} else if !taken {
		return fmt.Errorf("shard %d has %d keys: %w", to, d.store.Map().Capacity(to), ErrFull)
	}
	var written bool
	if entry.found {
		written, err = d.replace(ctx, text, from, to)
	} else {
		written, err = d.insert(ctx, text, to)
	}
	if err != nil || !written {
		d.forget(text) // it may have changed
	}
	switch {
	case err != nil && failure.MayHaveRun(err):
		return err // the key stays counted: one too many is safe
	case err != nil:
		d.counts.release(ctx, to)
		return err
	case !written:
		d.counts.release(ctx, to)
		return fmt.Errorf("key %s was moved by another caller: %w", key, ErrElsewhere)
	}
	d.remember(text, to)
	if entry.found {
		d.counts.release(ctx, from)
	}
	return nil
}
